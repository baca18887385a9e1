//! `UpstreamAddress`: where an upstream is, by a URL or by a Unix socket.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use http::Uri;
use http::uri::Scheme;
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

/// The prefix of the address of a Unix socket.
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

impl UpstreamAddress {
    fn url(&self) -> Option<&Uri> {
        match self {
            Self::Url(url) => Some(url),
            Self::Unix(_) => None,
        }
    }

    /// Whether connections are encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        self.url().is_some_and(|url| url.scheme() == Some(&Scheme::HTTPS))
    }

    /// The name of the service whose SRV records say where it is, as `_http._tcp.app.example`.
    pub(crate) fn service(&self) -> Option<&str> {
        self.url()?.host().filter(|host| host.starts_with('_'))
    }

    /// The host of the URL as it is written, or the path of the socket.
    pub(crate) fn named_host(&self) -> String {
        match self {
            Self::Url(url) => url.host().unwrap_or_default().to_owned(),
            Self::Unix(path) => path.display().to_string(),
        }
    }

    /// The host, without the brackets of IPv6 and without what names a service; or the path of the socket.
    pub(crate) fn host(&self) -> String {
        match self.service() {
            Some(service) => domain_of(service).to_owned(),
            None => self.named_host().trim_start_matches('[').trim_end_matches(']').to_owned(),
        }
    }

    /// The port, if the address has one: not a Unix socket, nor a service.
    pub(crate) fn port(&self) -> Option<u16> {
        let url = self.url().filter(|_| self.service().is_none())?;
        Some(url.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 }))
    }

    /// The host of requests that have none of their own.
    pub(crate) fn authority(&self) -> String {
        match (self.service(), self.url().and_then(Uri::authority)) {
            (Some(_), _) => self.host(),
            (None, Some(authority)) => authority.to_string(),
            (None, None) => "localhost".to_owned(),
        }
    }

    /// The prefix of every path, without a slash at the end.
    pub(crate) fn path_prefix(&self) -> &str {
        self.url().map_or("", |url| url.path().trim_end_matches('/'))
    }
}

/// The domain of a service, after the labels for service and protocol: `app.example` of `_http._tcp.app.example`.
fn domain_of(service: &str) -> &str {
    let mut rest = service;
    while let Some((label, behind)) = rest.split_once('.') {
        if !label.starts_with('_') {
            break;
        }
        rest = behind;
    }
    rest
}

impl FromStr for UpstreamAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix(UNIX) {
            Some(path) => unix_path(text, path).map(Self::Unix),
            None => {
                let address = parse_url(text, "an upstream", "http://127.0.0.1:9000").map(Self::Url)?;
                if address.service().is_some() && address.url().is_some_and(|url| url.port().is_some()) {
                    let service = address.named_host();
                    return Err(format!(
                        "{text:?} has a port, but the SRV records of {service} have it; remove it here"
                    ));
                }
                Ok(address)
            }
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

    #[test]
    fn services_are_named_by_underscores() {
        let address: UpstreamAddress = "https://_http._tcp.app.example/base".parse().unwrap();
        assert_eq!(address.service(), Some("_http._tcp.app.example"));
        assert_eq!(
            (address.host(), address.authority(), address.port()),
            ("app.example".into(), "app.example".into(), None)
        );
        let address: UpstreamAddress = "http://app.example".parse().unwrap();
        assert_eq!((address.service(), address.port()), (None, Some(80)));
        let address: UpstreamAddress = "http://[::1]:9000".parse().unwrap();
        assert_eq!((address.host(), address.authority()), ("::1".into(), "[::1]:9000".into()));
        let error = "http://_http._tcp.app.example:80".parse::<UpstreamAddress>().unwrap_err();
        assert!(
            error.ends_with("has a port, but the SRV records of _http._tcp.app.example have it; remove it here"),
            "{error}"
        );
    }
}
