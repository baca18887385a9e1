//! The keys of a file: a JSON Web Key Set, or public keys in PEM.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;

use super::algorithm::Algorithm;
use super::public_key::{PublicKey, public_key, rsa_public_key};

/// Public keys, each for one algorithm.
#[derive(Debug)]
pub(super) struct Keys(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    material: Material,
}

#[derive(Debug)]
enum Material {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    Point(Vec<u8>),
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<serde_json::Value>,
}

/// A key of a set, as far as it matters.
#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// More keys than any issuer has; each may be tried for a token that names none.
const KEYS_MAX: usize = 64;
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;

// === impl Keys ===

impl Keys {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, String> {
        let keys = if bytes.trim_ascii_start().starts_with(b"{") { key_set(bytes)? } else { pem(bytes)? };
        match keys.len() {
            0 => {
                Err("there is no key in it that can be used; give a JSON Web Key Set or public keys in PEM".to_owned())
            }
            1..=KEYS_MAX => Ok(Self(keys)),
            count => Err(format!("there are {count} keys in it; {KEYS_MAX} at most are read")),
        }
    }

    /// Whether there is a key of this name, or one without a name that could be meant.
    pub(super) fn has(&self, id: &str) -> bool {
        self.0.iter().any(|key| key.id.as_deref().is_none_or(|own| own == id))
    }

    /// Whether one of the keys has signed this. A token that names its key means no other, except keys without a name.
    pub(super) fn verify(&self, algorithm: Algorithm, id: Option<&str>, signed: &str, signature: &[u8]) -> bool {
        let is_meant = |key: &&Key| match (id, &key.id) {
            (Some(id), Some(own)) => id == own,
            _ => true,
        };
        let mut candidates = self.0.iter().filter(is_meant).filter(|key| key.algorithm == algorithm);
        candidates.any(|key| key.has_signed(signed.as_bytes(), signature))
    }
}

// === impl Key ===

impl Key {
    fn has_signed(&self, signed: &[u8], signature: &[u8]) -> bool {
        match &self.material {
            Material::Rsa(key) => {
                self.algorithm.rsa().is_some_and(|parameters| key.verify(parameters, signed, signature).is_ok())
            }
            Material::Point(point) => self
                .algorithm
                .curve()
                .is_some_and(|curve| UnparsedPublicKey::new(curve, point).verify(signed, signature).is_ok()),
        }
    }

    fn rsa(id: Option<String>, algorithm: Algorithm, n: &[u8], e: &[u8]) -> Result<Self, String> {
        let stripped = |number: &[u8]| {
            let zeros = number.iter().take_while(|byte| **byte == 0).count();
            number[zeros..].to_vec()
        };
        let (n, e) = (stripped(n), stripped(e));
        if !RSA_BYTES.contains(&n.len()) || e.is_empty() {
            return Err(format!("a key of RSA has {} bits; there have to be 2048 to 8192", n.len() * 8));
        }
        Ok(Self { id, algorithm, material: Material::Rsa(RsaPublicKeyComponents { n, e }) })
    }

    fn point(id: Option<String>, algorithm: Algorithm, point: Vec<u8>) -> Result<Self, String> {
        if Some(point.len()) != algorithm.point_bytes() {
            return Err("a key has the wrong length for its curve".to_owned());
        }
        Ok(Self { id, algorithm, material: Material::Point(point) })
    }
}

/// Keys of kinds that are not accepted are left out, with a warning: a set may be meant for others too.
fn key_set(bytes: &[u8]) -> Result<Vec<Key>, String> {
    let set: KeySet = serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON Web Key Set: {error}"))?;
    let mut keys = Vec::new();
    for (index, value) in set.keys.into_iter().enumerate() {
        // The message of an error might show a part of the key.
        let jwk: Jwk = serde_json::from_value(value).map_err(|_| format!("keys[{index}] is no JSON Web Key"))?;
        if jwk.purpose.as_deref().is_some_and(|purpose| purpose != "sig") {
            continue;
        }
        match jwk.algorithm() {
            Some(algorithm) => keys.push(jwk.key(algorithm).map_err(|fault| format!("keys[{index}]: {fault}"))?),
            None => tracing::warn!(
                key = index,
                kind = jwk.kty,
                algorithm = jwk.alg,
                "a key is left out; only RS256, PS256, ES256, EdDSA and their longer variants are accepted"
            ),
        }
    }
    Ok(keys)
}

// === impl Jwk ===

impl Jwk {
    /// The one algorithm that the key is for, if it is accepted and goes with the key.
    fn algorithm(&self) -> Option<Algorithm> {
        let usual = match (&*self.kty, self.crv.as_deref()) {
            ("RSA", _) => Algorithm::Rs256,
            ("EC", Some("P-256")) => Algorithm::Es256,
            ("EC", Some("P-384")) => Algorithm::Es384,
            ("OKP", Some("Ed25519")) => Algorithm::EdDsa,
            _ => return None,
        };
        match &self.alg {
            None => Some(usual),
            Some(name) => {
                let named = Algorithm::named(name)?;
                let fits = named == usual || (self.kty == "RSA" && named.rsa().is_some());
                fits.then_some(named)
            }
        }
    }

    fn key(&self, algorithm: Algorithm) -> Result<Key, String> {
        let bytes = |name: &str, text: &Option<String>| {
            let text = text.as_ref().ok_or_else(|| format!("{name} is missing"))?;
            URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| format!("{name} is not base64url"))
        };
        let id = self.kid.clone();
        match algorithm {
            Algorithm::EdDsa => Key::point(id, algorithm, bytes("x", &self.x)?),
            Algorithm::Es256 | Algorithm::Es384 => {
                Key::point(id, algorithm, [&[4][..], &bytes("x", &self.x)?, &bytes("y", &self.y)?].concat())
            }
            _ => Key::rsa(id, algorithm, &bytes("n", &self.n)?, &bytes("e", &self.e)?),
        }
    }
}

fn pem(bytes: &[u8]) -> Result<Vec<Key>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is neither JSON nor PEM".to_owned())?;
    let mut keys = Vec::new();
    let mut rest = text;
    while let Some((_, begun)) = rest.split_once("-----BEGIN ") {
        let (label, begun) = begun.split_once("-----").ok_or("a key in PEM has no end")?;
        let (body, after) = begun.split_once("-----END ").ok_or("a key in PEM has no end")?;
        rest = after;
        let fault = |why: &str| format!("key {} in PEM: {why}", keys.len() + 1);
        let body: String = body.split_whitespace().collect();
        let key = match label {
            "PUBLIC KEY" | "RSA PUBLIC KEY" => STANDARD.decode(body).map_err(|_| fault("it is not base64"))?,
            _ if label.contains("PRIVATE") => {
                return Err(fault("it is a private key, which belongs to the issuer alone; give the public one"));
            }
            _ => return Err(fault("it is neither a PUBLIC KEY nor an RSA PUBLIC KEY")),
        };
        let key = match label {
            "PUBLIC KEY" => public_key(&key),
            _ => rsa_public_key(&key),
        };
        let key = key.ok_or_else(|| fault("it is no key of RSA, of P-256, of P-384 or of Ed25519"))?;
        keys.push(match key {
            PublicKey::Rsa { n, e } => Key::rsa(None, Algorithm::Rs256, n, e),
            PublicKey::Point(algorithm, point) => Key::point(None, algorithm, point.to_vec()),
        }?);
    }
    Ok(keys)
}
