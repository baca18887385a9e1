//! The proxies in front of the gateway that are believed when they say where a request comes from.

use crate::config::{Cidr, IdentityConfig, IdentitySource};
use crate::peer::Peer;

/// The proxies in front that are believed: those whose headers say who is calling.
#[derive(Debug, Default)]
pub(crate) struct TrustedProxies {
    networks: Vec<Cidr>,
    certificates: Vec<String>,
}

// === impl TrustedProxies ===

impl TrustedProxies {
    pub(crate) fn new(config: &IdentityConfig) -> Self {
        let mut trusted = Self::default();
        for source in &config.sources {
            if let IdentitySource::TrustedHeaders(headers) = source {
                trusted.networks.extend(headers.from_addresses.iter().copied());
                trusted.certificates.extend(headers.from_certificates.iter().cloned());
            }
        }
        trusted
    }

    pub(crate) fn is_trusted(&self, peer: &Peer) -> bool {
        let address = peer.address.ip();
        let name = peer.certificate.as_ref().map(|certificate| &certificate.common_name);
        self.networks.iter().any(|network| network.contains(address))
            || name.is_some_and(|name| self.certificates.contains(name))
    }
}
