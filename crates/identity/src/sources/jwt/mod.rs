//! Signed bearer tokens (JSON Web Tokens).
//!
//! A key says which algorithm its signatures have; the algorithm in a token has to be the same, and is not trusted otherwise.
//! There are no algorithms with a shared secret, and `none` is not one.

mod algorithm;
mod claims;
mod fetch;
mod fetched;
mod keys;
mod public_key;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use evenkeel_engine::User;
use evenkeel_files::WatchedFile;
use serde::Deserialize;

use super::cache::Cache;
use super::naming::Naming;
use super::secret::{SecretHash, SecretHasher};
use super::{Denial, Verdict};
use crate::config::{JwtIdentity, KeysFrom};
use crate::counts::IdentityCounts;
use crate::key_server::ConnectKeyServer;
use algorithm::Algorithm;
use claims::Rules;
use fetch::KeySource;
use fetched::{FetchedKeys, Rhythm};
use keys::Keys;

/// Believes tokens that are signed with one of the issuer's keys.
#[derive(Debug)]
pub(crate) struct Jwts(IssuerKeys);

#[derive(Debug)]
enum IssuerKeys {
    File(WatchedFile<Verifier>),
    Url(FetchedKeys),
}

/// The current keys, and a cache of the tokens that were valid with them. New keys start with an empty cache.
#[derive(Debug)]
pub(crate) struct Verifier {
    keys: Keys,
    rules: Rules,
    hasher: SecretHasher,
    known: Cache<SecretHash, GoodToken>,
}

/// The user of a token, and when the token expires.
#[derive(Debug, Clone)]
struct GoodToken {
    user: Arc<User>,
    until: u64,
}

/// The head of a token, as far as it matters.
#[derive(Deserialize)]
struct Head {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood. A token with any is refused.
    crit: Option<serde_json::Value>,
}

/// The parts of a token, decoded.
struct Parsed<'a> {
    head: Head,
    /// The signed text.
    signed: &'a str,
    signature: Vec<u8>,
    payload: Vec<u8>,
}

/// No token that fits into a request's head is longer.
const TOKEN_BYTES_MAX: usize = 16 * 1024;
/// Users with longer names and groups are put together anew each time, so that the cache has a bound in bytes.
const KNOWN_BYTES_MAX: usize = 4096;

// === impl Jwts ===

impl Jwts {
    /// Keys from a file are read now. Keys from a URL are waited for a little, and fetched in the background after that.
    pub(super) fn open(
        config: &JwtIdentity,
        counts: &IdentityCounts,
        connect: ConnectKeyServer<'_>,
    ) -> Result<Self, String> {
        let rules = Rules::new(config);
        let read = move |bytes: &[u8]| Verifier::read(bytes, rules.clone());
        match &config.keys {
            KeysFrom::File(path) => {
                let named = |path: &Path, fault: String| format!("{}: {fault}", path.display());
                let read = move |path: &Path, bytes: &[u8]| read(bytes).map_err(|fault| named(path, fault));
                Ok(Self(IssuerKeys::File(WatchedFile::open(path, read)?)))
            }
            KeysFrom::Url(url) => {
                let server = connect(url, config.keys_ca.as_deref());
                let server = server.map_err(|error| format!("the keys of {url} cannot be fetched: {error}"))?;
                let source = KeySource::new(url, server);
                let keys = FetchedKeys::start(source, read, Rhythm::default(), counts.clone())?;
                Ok(Self(IssuerKeys::Url(keys)))
            }
        }
    }

    /// The verdict on a token.
    pub(super) fn ask(&self, token: &str) -> Verdict {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        match &self.0 {
            IssuerKeys::File(file) => file.load().ask(token, now),
            IssuerKeys::Url(fetched) => fetched.ask(token, now),
        }
    }
}

// === impl Verifier ===

impl Verifier {
    fn read(keys: &[u8], rules: Rules) -> Result<Self, String> {
        Self::new(Keys::read(keys)?, rules)
    }

    fn new(keys: Keys, rules: Rules) -> Result<Self, String> {
        Ok(Self { keys, rules, hasher: SecretHasher::new()?, known: Cache::default() })
    }

    fn ask(&self, token: &str, now: u64) -> Verdict {
        if token.len() > TOKEN_BYTES_MAX {
            return Verdict::Wrong(Denial::Malformed);
        }
        let hash = self.hasher.hash(token);
        if let Some(good) = self.known.get(&hash) {
            return if now < good.until { Verdict::Known(good.user) } else { Verdict::Wrong(Denial::Expired) };
        }
        match self.verify(token, now) {
            Ok(good) => {
                let GoodToken { user, .. } = &good;
                let bytes = user.name.len() + user.groups.iter().map(|group| group.len()).sum::<usize>();
                if bytes <= KNOWN_BYTES_MAX {
                    self.known.keep(hash, good.clone());
                }
                Verdict::Known(good.user)
            }
            Err(reason) => Verdict::Wrong(reason),
        }
    }

    /// Whether the token names a key that is not there, and would be good with it. A token of another issuer, or one that has
    /// expired, stays wrong whatever keys there are.
    fn lacks_key_of(&self, token: &str, now: u64) -> bool {
        let mut parts = token.split('.').map(decoded);
        let (Some(Some(head)), Some(Some(claims))) = (parts.next(), parts.next()) else { return false };
        let id = serde_json::from_slice::<Head>(&head).ok().and_then(|head| head.kid);
        let is_missing = id.is_some_and(|id| !self.keys.has(&id));
        is_missing && serde_json::from_slice(&claims).is_ok_and(|claims| self.rules.judge(&claims, now).is_ok())
    }

    /// The user of a token and its expiry, or why it is not good.
    fn verify(&self, token: &str, now: u64) -> Result<GoodToken, Denial> {
        let parsed = Parsed::new(token).ok_or(Denial::Malformed)?;
        let Parsed { head, signed, signature, payload } = parsed;
        let algorithm = Algorithm::named(&head.alg).ok_or(Denial::Signature)?;
        if head.crit.is_some() || !self.keys.verify(algorithm, head.kid.as_deref(), signed, &signature) {
            return Err(Denial::Signature);
        }
        let claims = serde_json::from_slice(&payload).map_err(|_| Denial::Claims)?;
        let (user, until) = self.rules.judge(&claims, now)?;
        Ok(GoodToken { user, until })
    }
}

// === impl Parsed ===

impl<'a> Parsed<'a> {
    fn new(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (head, payload) = signed.split_once('.')?;
        // As text: members that do not matter have to be UTF-8 too (RFC 7519, 7.2).
        let head = serde_json::from_str(&String::from_utf8(decoded(head)?).ok()?).ok()?;
        Some(Self { head, signed, signature: decoded(signature)?, payload: decoded(payload)? })
    }
}

/// For `crate::fuzzing`.
#[cfg(feature = "fuzzing")]
impl Verifier {
    pub(crate) fn open(keys: &[u8], config: &JwtIdentity) -> Result<Self, String> {
        Self::read(keys, Rules::new(config))
    }

    pub(crate) fn user(&self, token: &str, now: u64) -> Option<Arc<User>> {
        match self.ask(token, now) {
            Verdict::Known(user) => Some(user),
            _ => None,
        }
    }
}

fn decoded(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part).ok()
}

/// The names of a source's users.
fn naming(config: &JwtIdentity) -> Naming {
    Naming {
        user_prefix: config.user_prefix.clone(),
        group_prefix: config.group_prefix.clone(),
        system_names: config.system_names,
    }
}

#[cfg(test)]
mod tests;
