//! Whether the settings make sense, and every problem if not.

use super::{IdentityConfig, IdentitySource, KeysFrom};
use crate::open_paths::OpenPaths;

/// Something that is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {message}")]
#[non_exhaustive]
pub struct Problem {
    /// The setting, as `identity.sources[0].jwt.userClaim`.
    pub field: String,
    /// What is wrong with the setting, and what to do.
    pub message: String,
}

const NO_CERTIFICATES: &str = "no listener asks for client certificates; set `tls.clientCa` of a listener";

// === impl Problem ===

impl Problem {
    /// A problem of this setting.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

// === impl IdentityConfig ===

impl IdentityConfig {
    /// Everything that is wrong with the settings, except for their files, which [`Identification::open`] reads. Fields begin with
    /// `identity`. Sources that read client certificates are wrong where no listener asks for any.
    ///
    /// [`Identification::open`]: crate::Identification::open
    pub fn check(&self, asks_for_certificates: bool) -> Vec<Problem> {
        let mut problems = Vec::new();
        for (index, path) in self.open_paths.iter().enumerate() {
            if let Err(message) = OpenPaths::new(std::slice::from_ref(path)) {
                problems.push(Problem::new(format!("identity.openPaths[{index}]"), message));
            }
        }
        for (index, source) in self.sources.iter().enumerate() {
            let mut add = |name: &str, message: &str| {
                problems.push(Problem::new(format!("identity.sources[{index}].{name}"), message));
            };
            source.check(asks_for_certificates, &mut add);
            if matches!(source, IdentitySource::Address(_)) && index + 1 < self.sources.len() {
                add(
                    "address",
                    "every client has an address, so the sources after this one are never used; put it last",
                );
            }
        }
        problems
    }
}

// === impl IdentitySource ===

impl IdentitySource {
    fn check(&self, asks_for_certificates: bool, add: &mut dyn FnMut(&str, &str)) {
        match self {
            Self::TrustedHeaders(headers) => {
                if headers.from_addresses.is_empty() && headers.from_certificates.is_empty() {
                    let message = "no proxy is trusted; name proxies in fromAddresses or fromCertificates";
                    add("trustedHeaders", message);
                }
                if !headers.from_certificates.is_empty() && !asks_for_certificates {
                    add("trustedHeaders.fromCertificates", NO_CERTIFICATES);
                }
                if headers.user_header == headers.group_header {
                    add("trustedHeaders.groupHeader", "is the same as userHeader; name another header");
                }
            }
            Self::ClientCertificate(_) if !asks_for_certificates => add("clientCertificate", NO_CERTIFICATES),
            Self::Address(address) => {
                for (name, bits, most) in [("ipv4Bits", address.ipv4_bits, 32), ("ipv6Bits", address.ipv6_bits, 128)] {
                    if bits > most {
                        add(&format!("address.{name}"), &format!("must be at most {most}"));
                    }
                }
            }
            Self::Jwt(jwt) => {
                if jwt.user_claim.is_empty() {
                    add("jwt.userClaim", "is empty; name the claim with the user's name, as `sub`");
                }
                let is_https = matches!(&jwt.keys, KeysFrom::Url(url) if url.scheme_str() == Some("https"));
                if jwt.keys_ca.is_some() && !is_https {
                    add("jwt.keysCa", "applies only to keys from an https URL; remove it");
                }
            }
            Self::ClientCertificate(_) | Self::Tokens(_) | Self::ApiKey(_) => {}
        }
    }
}
