//! `UpstreamAddress`: where an upstream is, by a URL or by a Unix socket.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::upstream::parse_url;

/// Where an upstream is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamAddress {
    /// A URL: `http://127.0.0.1:9000`, `https://orders.internal/base`.
    Url(Uri),
    /// The file of a Unix socket: `unix:/run/app.sock`.
    Unix(PathBuf),
}

/// What the address of a Unix socket begins with.
pub(super) const UNIX: &str = "unix:";
/// The longest path that the system takes for a Unix socket.
const UNIX_PATH_MAX: usize = 107;

/// The path of a Unix socket, which `text` names.
pub(super) fn unix_path(text: &str, path: &str) -> Result<PathBuf, String> {
    let fault = |why: &str| {
        Err(format!("{text:?} is not a Unix socket: its path {why}; write it as `unix:/run/evenkeel.sock`"))
    };
    if !path.starts_with('/') {
        return fault("is not absolute");
    }
    if path.ends_with('/') || path.contains('\0') {
        return fault("does not end with the name of a file");
    }
    if path.len() > UNIX_PATH_MAX {
        return fault(&format!("is longer than {UNIX_PATH_MAX} bytes"));
    }
    Ok(path.into())
}

// === impl UpstreamAddress ===

impl FromStr for UpstreamAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(UNIX) {
            Some(path) => unix_path(text, path).map(Self::Unix),
            None => parse_url(text, "an upstream", "http://127.0.0.1:9000").map(Self::Url),
        }
    }
}

impl fmt::Display for UpstreamAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => url.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

impl Serialize for UpstreamAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for UpstreamAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_unix_sockets_are_read_and_written() {
        for text in ["http://127.0.0.1:9000/", "https://orders.internal/base", "unix:/run/app.sock"] {
            assert_eq!(text.parse::<UpstreamAddress>().unwrap().to_string(), text);
        }
        for text in ["unix:app.sock", "unix:/run/", "unix://run/x/", "http://"] {
            assert!(text.parse::<UpstreamAddress>().is_err(), "{text}");
        }
    }
}
