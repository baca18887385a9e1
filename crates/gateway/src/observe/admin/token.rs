//! The token of the admin endpoint: clients with it may read everything, and others only the health checks.
//!
//! Programs send it as a bearer token. Browsers ask for it as a password, under any user name.

use std::fmt;
use std::io;
use std::path::PathBuf;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use evenkeel_files::{advice, is_open_to_others};
use http::header::{AUTHORIZATION, CACHE_CONTROL, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use ring::hmac;
use ring::rand::SystemRandom;

use super::hosts::HEALTH_CHECKS;
use crate::config::AdminConfig;
use crate::observe::metrics::GatewayMetrics;

/// The token, as a hash under a key that is new in every process.
#[derive(Clone)]
pub struct AdminToken {
    key: hmac::Key,
    tag: hmac::Tag,
}

/// The environment variable that holds the token, where there is no file.
pub const TOKEN_VARIABLE: &str = "EVENKEEL_ADMIN_TOKEN";
/// A shorter one could be guessed.
const LENGTH_MIN: usize = 16;

/// Why there is no token to compare with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AdminTokenError {
    /// The endpoint is reachable from other machines.
    #[error(
        "the admin endpoint on {0} is reachable from other machines and needs a token: set `admin.tokenFile` or the variable \
         {TOKEN_VARIABLE}, or let it listen on 127.0.0.1"
    )]
    Missing(String),
    /// The file cannot be read.
    #[error("admin.tokenFile: {path}: {error}; {}", advice(error))]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// Others can read the file.
    #[error("admin.tokenFile: other users can read {0}; make it private with `chmod 600`")]
    Open(PathBuf),
    /// The token is too short.
    #[error(
        "the token of the admin endpoint in {0} is shorter than {LENGTH_MIN} characters; make one with `openssl rand -hex 32`"
    )]
    Short(String),
    /// There is no key to hash the token with.
    #[error("cannot get random numbers from the operating system")]
    NoRandomNumbers,
}

/// Rejects requests without the token with 401. Health checks need none.
pub(super) async fn check(
    State((token, metrics)): State<(AdminToken, GatewayMetrics)>,
    request: Request,
    next: Next,
) -> Response {
    if HEALTH_CHECKS.contains(&request.uri().path()) || token.is_in(request.headers()) {
        return next.run(request).await;
    }
    if request.headers().contains_key(AUTHORIZATION) {
        metrics.admin_wrong_token();
    } else {
        metrics.admin_without_token();
    }
    let text = "the admin endpoint needs its token: send `Authorization: Bearer TOKEN`, or the token as a password\n";
    let mut response = (StatusCode::UNAUTHORIZED, [(CACHE_CONTROL, "no-store")], text).into_response();
    for scheme in ["Basic realm=\"evenkeel\", charset=\"UTF-8\"", "Bearer realm=\"evenkeel\""] {
        response.headers_mut().append(WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
    }
    response
}

// === impl AdminToken ===

impl AdminToken {
    /// The token that the settings name, or the one in the environment (`variable`), or none.
    pub fn open(config: &AdminConfig, variable: Option<String>) -> Result<Option<Self>, AdminTokenError> {
        match (&config.token_file, variable) {
            (Some(path), _) => {
                let unreadable = |error| AdminTokenError::Unreadable { path: path.clone(), error };
                if is_open_to_others(path).map_err(unreadable)? {
                    return Err(AdminTokenError::Open(path.clone()));
                }
                let text = evenkeel_files::read_to_string(path).map_err(unreadable)?;
                Self::new(&text, || path.display().to_string()).map(Some)
            }
            (None, Some(text)) => Self::new(&text, || format!("the variable {TOKEN_VARIABLE}")).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn new(text: &str, place: impl FnOnce() -> String) -> Result<Self, AdminTokenError> {
        let text = text.trim();
        if text.chars().count() < LENGTH_MIN {
            return Err(AdminTokenError::Short(place()));
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| AdminTokenError::NoRandomNumbers)?;
        let tag = hmac::sign(&key, text.as_bytes());
        Ok(Self { key, tag })
    }

    /// Whether the headers of a request carry it, once.
    fn is_in(&self, headers: &HeaderMap) -> bool {
        let mut values = headers.get_all(AUTHORIZATION).iter();
        let (Some(value), None) = (values.next(), values.next()) else { return false };
        let Some((scheme, rest)) = value.to_str().ok().and_then(|value| value.trim().split_once(' ')) else {
            return false;
        };
        if scheme.eq_ignore_ascii_case("bearer") {
            return self.is(rest.trim().as_bytes());
        }
        let decoded = STANDARD.decode(rest.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"));
        let password = decoded.as_deref().and_then(|pair| pair.splitn(2, |byte| *byte == b':').nth(1));
        password.is_some_and(|password| self.is(password))
    }

    /// The comparison takes the same time for every wrong token.
    fn is(&self, text: &[u8]) -> bool {
        hmac::verify(&self.key, text, self.tag.as_ref()).is_ok()
    }
}

impl fmt::Debug for AdminToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminToken")
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    #[test]
    fn a_token_comes_as_bearer_or_as_password() {
        let token = AdminToken::open(&AdminConfig::default(), Some(TOKEN.to_owned())).unwrap().unwrap();
        let is_in = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            }
            token.is_in(&headers)
        };
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        let bearer = format!("Bearer {TOKEN}");
        for good in
            [&bearer, &format!("bearer  {TOKEN} "), &basic(&format!("me:{TOKEN}")), &basic(&format!(":{TOKEN}"))]
        {
            assert!(is_in(&[good]), "{good}");
        }
        for bad in ["", "Bearer", "Bearer ", TOKEN, "Bearer 0123456789abcdeF", "Basic !", &basic(TOKEN), &basic("me:x")]
        {
            assert!(!is_in(&[bad]), "{bad}");
        }
        assert!(!is_in(&[]) && !is_in(&[&bearer, &bearer]));
    }

    #[test]
    fn a_file_has_to_be_private_and_long_enough() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let config = AdminConfig { token_file: Some(path.clone()), ..AdminConfig::default() };
        let open = || AdminToken::open(&config, None).map(|token| token.is_some()).map_err(|error| error.to_string());
        let missing = open().unwrap_err();
        assert!(
            missing.starts_with("admin.tokenFile: ") && missing.ends_with("name a file that exists and is readable")
        );
        for (text, mode, expected) in [
            (TOKEN, 0o600, None),
            (TOKEN, 0o400, None),
            (TOKEN, 0o640, Some("admin.tokenFile: other users can read ")),
            (TOKEN, 0o604, Some("admin.tokenFile: other users can read ")),
            ("0123456789abcde\n", 0o600, Some("shorter than 16 characters")),
        ] {
            let _ = fs::remove_file(&path);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            match (open(), expected) {
                (Ok(is_there), None) => assert!(is_there),
                (Err(found), Some(expected)) => assert!(found.contains(expected), "{found}"),
                (found, expected) => panic!("{found:?} is not {expected:?}"),
            }
        }
        assert!(AdminToken::open(&AdminConfig::default(), None).unwrap().is_none());
    }
}
