//! `ListenAddress`: an address or a name of this machine, with a port, or a Unix socket.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Where to listen: an address of this machine, a name that is looked up at the start, or a Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListenAddress {
    /// An IP address and a port.
    Socket(SocketAddr),
    /// A name and a port. All addresses of the name are listened on.
    Name(String, u16),
    /// The file of a Unix socket, which the gateway makes.
    Unix(PathBuf),
}

// === impl ListenAddress ===

impl ListenAddress {
    /// The port; zero leaves it to the system. A Unix socket has none.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Socket(address) => Some(address.port()),
            Self::Name(_, port) => Some(*port),
            Self::Unix(_) => None,
        }
    }

    /// The addresses to listen on, at least one. `localhost` is this machine only, whatever a name server says. A Unix socket
    /// has no address.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        let (name, port) = match self {
            Self::Socket(address) => return Ok(vec![*address]),
            Self::Name(name, port) => (name, *port),
            Self::Unix(_) => return Err(io::ErrorKind::Unsupported.into()),
        };
        let mut found: Vec<SocketAddr> = Vec::new();
        if name.eq_ignore_ascii_case("localhost") {
            let addresses = (&**name, port).to_socket_addrs().into_iter().flatten();
            found.extend(addresses.filter(|address| address.ip().is_loopback()));
            found.push((IpAddr::V4(Ipv4Addr::LOCALHOST), port).into());
        } else {
            found.extend((&**name, port).to_socket_addrs()?);
        }
        // Programs that take the first address mostly expect one of IPv4.
        found.sort();
        found.dedup();
        if found.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(found) }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Socket(address)
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self::Socket(address));
        }
        let fault = |why: &str| {
            Err(format!(
                "{text:?} {why}; write an address or a name and a port, as `127.0.0.1:8080` or `localhost:8080`"
            ))
        };
        if let Some(path) = text.strip_prefix(super::UNIX) {
            return super::unix_path(text, path).map(Self::Unix);
        }
        if text.contains("://") {
            return fault("is a URL");
        }
        if text.parse::<IpAddr>().is_ok() {
            return fault("has no port");
        }
        let Some((name, port)) = text.rsplit_once(':') else {
            let is_port = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            return fault(if is_port { "has no address" } else { "has no port" });
        };
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
        let is_number = name.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        if name.is_empty() || !is_name || is_number {
            return fault("does not begin with an address or a name");
        }
        match port.parse::<u16>() {
            Ok(port) if port.to_string().len() == text.len() - name.len() - 1 => Ok(Self::Name(name.to_owned(), port)),
            _ => fault("has a port that is not a number from 0 to 65535"),
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => address.fmt(f),
            Self::Name(name, port) => write!(f, "{name}:{port}"),
            Self::Unix(path) => write!(f, "{}{}", super::UNIX, path.display()),
        }
    }
}

impl Serialize for ListenAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_read_and_written() {
        for text in [
            "127.0.0.1:8080",
            "[::1]:0",
            "localhost:8080",
            "gateway-1.internal:1",
            "my_host:65535",
            "unix:/run/evenkeel.sock",
        ] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_neither_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "has no port"),
            ("8080", "has no address"),
            (":8080", "does not begin with an address or a name"),
            ("*:8080", "does not begin with an address or a name"),
            ("256.1.1.1:80", "does not begin with an address or a name"),
            ("localhost", "has no port"),
            ("127.0.0.1", "has no port"),
            ("::1", "has no port"),
            ("localhost:http", "has a port that is not a number"),
            ("localhost:65536", "has a port that is not a number"),
            ("localhost:+80", "has a port that is not a number"),
            ("http://localhost:80", "is a URL"),
        ] {
            let found = text.parse::<ListenAddress>().unwrap_err();
            assert!(found.contains(reason) && found.ends_with("`127.0.0.1:8080` or `localhost:8080`"), "{found}");
        }
    }

    #[test]
    fn a_unix_socket_has_an_absolute_path_that_fits() {
        let long = format!("unix:/{}", "x".repeat(200));
        for (text, reason) in [
            ("unix:", "is not absolute"),
            ("unix:evenkeel.sock", "is not absolute"),
            ("unix:/run/", "does not end with the name of a file"),
            (&*long, "is longer than"),
        ] {
            let found = text.parse::<ListenAddress>().unwrap_err();
            assert!(found.contains(reason) && found.ends_with("`unix:/run/evenkeel.sock`"), "{found}");
        }
    }

    #[test]
    fn localhost_is_this_machine() {
        let found = "LocalHost:81".parse::<ListenAddress>().unwrap().resolve().unwrap();
        assert_eq!(found[0], "127.0.0.1:81".parse().unwrap());
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 81), "{found:?}");
        assert!("there.is.no.such.name.invalid:1".parse::<ListenAddress>().unwrap().resolve().is_err());
    }
}
