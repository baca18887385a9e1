//! Where public keys come from: a file or a URL.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::hide_credentials;

/// Where public keys come from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeysFrom {
    /// A file, read again when it changes.
    File(PathBuf),
    /// A URL of the issuer, fetched from time to time: `https`, or `http` on this machine.
    Url(Uri),
}

// === impl KeysFrom ===

impl Default for KeysFrom {
    fn default() -> Self {
        Self::File(PathBuf::new())
    }
}

impl From<PathBuf> for KeysFrom {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl FromStr for KeysFrom {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains("://") {
            return Ok(Self::File(text.into()));
        }
        let shown = hide_credentials(text);
        let fault = |why: &str| {
            format!("{shown:?} is not a URL of keys: {why}; write `https://issuer.example/keys`, or the name of a file")
        };
        let uri: Uri = text.parse().map_err(|error| fault(&format!("{error}")))?;
        let Some(authority) = uri.authority() else { return Err(fault("it has no host")) };
        if authority.as_str().contains('@') {
            return Err(fault("it contains a user name"));
        }
        match uri.scheme_str() {
            Some("https") => {}
            // An attacker on the way could exchange the keys, and pass for any user.
            Some("http") if is_this_machine(authority.host()) => {}
            Some("http") => return Err(fault("without TLS, others on the network could replace the keys")),
            _ => return Err(fault("its scheme is not https")),
        }
        Ok(Self::Url(uri))
    }
}

fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

impl Serialize for KeysFrom {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::File(path) => path.serialize(serializer),
            Self::Url(url) => serializer.collect_str(url),
        }
    }
}

impl<'de> Deserialize<'de> for KeysFrom {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_files_or_where_nobody_can_exchange_them() {
        for file in ["", "keys.pem", "/etc/keys.jwks", "https:keys"] {
            assert_eq!(file.parse(), Ok(KeysFrom::File(file.into())));
        }
        for url in [
            "https://issuer.example/keys",
            "https://issuer.example:8443/keys?tenant=1",
            "http://127.0.0.1:80/keys",
            "http://[::1]/keys",
            "http://localhost:1/",
        ] {
            assert_eq!(url.parse(), Ok(KeysFrom::Url(url.parse().unwrap())));
        }
        for (wrong, reason) in [
            ("http://issuer.example/keys", "others on the network"),
            ("http://127.0.0.1.example/keys", "others on the network"),
            ("http://192.0.2.1/keys", "others on the network"),
            ("ftp://issuer/keys", "its scheme is not https"),
            (
                "https://me:s3cret@issuer/keys",
                "\"https://…@issuer/keys\" is not a URL of keys: it contains a user name",
            ),
            ("https://", "is not a URL of keys"),
        ] {
            let found = wrong.parse::<KeysFrom>().unwrap_err();
            assert!(found.contains(reason) && found.contains("https://issuer.example/keys"), "{found}");
        }
    }
}
