//! How the names of upstreams are looked up.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::duration;

/// How the names of upstreams are looked up, and how often. All addresses of a name get requests.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct DnsConfig {
    /// The name servers, as `10.0.0.53` or `127.0.0.1:8600`. The default is those of the system, and its file of hosts before them.
    pub servers: Vec<NameServer>,
    /// How often names are looked up. The default is as often as the TTL of their records says: after a second at the earliest, and after five
    /// minutes at the latest.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub period: Option<Duration>,
    /// Which addresses are used where a name has both kinds.
    pub family: AddressFamily,
}

/// Which addresses of a name are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AddressFamily {
    /// IPv4 addresses if there are any, otherwise IPv6 addresses: most machines with both have one of each.
    #[default]
    Auto,
    /// IPv4 addresses only.
    Ipv4,
    /// IPv6 addresses only.
    Ipv6,
    /// All addresses.
    All,
}

/// The address of a name server, at port 53 if it has no other.
///
/// Not `#[non_exhaustive]`: it is an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameServer(pub SocketAddr);

/// The port of name servers.
const PORT: u16 = 53;

// === impl NameServer ===

impl FromStr for NameServer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let address = text.parse::<SocketAddr>().or_else(|_| bare.parse::<IpAddr>().map(|ip| (ip, PORT).into()));
        match address {
            Ok(address) if address.port() > 0 => Ok(Self(address)),
            _ => Err(format!(
                "{text:?} is not the address of a name server; write it as `10.0.0.53` or `127.0.0.1:8600`"
            )),
        }
    }
}

impl fmt::Display for NameServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.port() == PORT { self.0.ip().fmt(formatter) } else { self.0.fmt(formatter) }
    }
}

impl Serialize for NameServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for NameServer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_addresses_with_or_without_a_port() {
        for (text, address, shown) in [
            ("10.0.0.53", "10.0.0.53:53", "10.0.0.53"),
            ("127.0.0.1:8600", "127.0.0.1:8600", "127.0.0.1:8600"),
            ("::1", "[::1]:53", "::1"),
            ("[::1]", "[::1]:53", "::1"),
            ("[::1]:54", "[::1]:54", "[::1]:54"),
        ] {
            let server: NameServer = text.parse().unwrap();
            assert_eq!((server.0.to_string(), server.to_string()), (address.to_owned(), shown.to_owned()));
        }
        for wrong in ["", "dns.example", "10.0.0.53:0", "10.0.0.53:x", "10.0.0"] {
            let error = wrong.parse::<NameServer>().unwrap_err();
            assert!(error.contains("write it as `10.0.0.53` or `127.0.0.1:8600`"), "{error}");
        }
    }
}
