//! Fetches keys from the issuer's server.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};

use crate::key_server::KeyServer;

/// The location of an issuer's keys.
#[derive(Debug)]
pub(super) struct KeySource {
    url: Uri,
    server: Box<dyn KeyServer>,
}

/// The keys that were fetched, as bytes.
#[derive(Debug)]
pub(super) struct Fetched {
    pub(super) bytes: Bytes,
    /// How long the keys stay good, as the server says.
    pub(super) max_age: Option<Duration>,
}

const KEY_SETS: HeaderValue = HeaderValue::from_static("application/jwk-set+json, application/json, */*;q=0.1");

// === impl KeySource ===

impl KeySource {
    pub(super) fn new(url: &Uri, server: Box<dyn KeyServer>) -> Self {
        Self { url: url.clone(), server }
    }

    pub(super) fn url(&self) -> &Uri {
        &self.url
    }

    /// Fetches the keys. Errors say what went wrong, without the URL.
    pub(super) async fn fetch(&self) -> Result<Fetched, String> {
        let response = self.server.get(HeaderMap::from_iter([(ACCEPT, KEY_SETS)])).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("the response has status {}", response.status()));
        }
        Ok(Fetched { max_age: max_age(response.headers()), bytes: response.into_body() })
    }
}

/// The `max-age` of `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut directives = values.flat_map(|value| value.split(',')).map(str::trim);
    directives.find_map(|directive| {
        let (name, value) = directive.split_once('=')?;
        let seconds = value.trim_matches('"').parse().ok().filter(|_| name.eq_ignore_ascii_case("max-age"))?;
        Some(Duration::from_secs(seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_read_from_cache_control() {
        for (values, seconds) in [
            (&[] as &[&str], None),
            (&["public, max-age=300, must-revalidate"], Some(300)),
            (&["no-transform", "Max-Age=\"60\""], Some(60)),
            (&["s-maxage=5"], None),
            (&["max-age=soon"], None),
            (&["max-age=-1"], None),
        ] {
            let headers = values.iter().map(|value| (CACHE_CONTROL, value.parse().unwrap())).collect();
            assert_eq!(max_age(&headers), seconds.map(Duration::from_secs), "{values:?}");
        }
    }
}
