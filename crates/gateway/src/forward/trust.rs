//! The proxies in front of the gateway that are believed when they say where a request comes from.

use std::net::IpAddr;

use crate::config::{IdentityConfig, IdentitySource};
use crate::peer::Peer;

/// The proxies in front that are believed: those whose headers say who is calling.
#[derive(Debug, Default)]
pub(crate) struct TrustedProxies {
    networks: Vec<(IpAddr, u32)>,
    certificates: Vec<String>,
}

// === impl TrustedProxies ===

impl TrustedProxies {
    /// Entries that are no addresses are not looked at here; identification refuses them.
    pub(crate) fn new(config: &IdentityConfig) -> Self {
        let mut trusted = Self::default();
        for source in &config.sources {
            if let IdentitySource::TrustedHeaders(headers) = source {
                trusted.networks.extend(headers.from_addresses.iter().filter_map(|text| network(text)));
                trusted.certificates.extend(headers.from_certificates.iter().cloned());
            }
        }
        trusted
    }

    pub(crate) fn is_trusted(&self, peer: &Peer) -> bool {
        let address = peer.address.ip().to_canonical();
        let name = peer.certificate.as_ref().map(|certificate| &certificate.common_name);
        self.networks.iter().any(|network| contains(*network, address))
            || name.is_some_and(|name| self.certificates.contains(name))
    }
}

fn network(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().ok()?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(width);
    (bits <= width).then_some((address, bits))
}

fn contains((network, bits): (IpAddr, u32), address: IpAddr) -> bool {
    match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (network.to_bits() ^ address.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => {
            (network.to_bits() ^ address.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_contain_their_addresses() {
        for (text, address, is_inside) in [
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3", "10.1.2.4", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "::1", false),
            ("fd00::/8", "fd12::1", true),
            ("::1", "::2", false),
        ] {
            assert_eq!(contains(network(text).unwrap(), address.parse().unwrap()), is_inside, "{text} {address}");
        }
        assert_eq!((network("10.0.0.0/33"), network("a"), network("1.2.3.4/")), (None, None, None));
    }
}
