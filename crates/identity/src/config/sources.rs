//! How to find out who is calling.

use std::path::PathBuf;

use http::HeaderName;
use serde::{Deserialize, Serialize};

use super::{Cidr, KeysFrom, header};

/// How to find out who is calling: the first source that knows the client decides.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct IdentityConfig {
    /// The sources, in the order in which they are asked.
    pub sources: Vec<IdentitySource>,
    /// What happens to requests of which no source knows who sent them.
    pub anonymous: AnonymousRequests,
    /// Tells the upstream who is calling, in `X-Remote-User` and `X-Remote-Group`. What clients send under these names
    /// is removed in any case.
    pub tell_upstream: bool,
    /// Paths that need no credential, such as those of health checks: `/healthz`, or `/public/*` for everything below
    /// `/public/`. A request there whose sender is not known, or whose credential is wrong, is one of `system:anonymous`.
    pub open_paths: Vec<String>,
}

/// What happens to requests that no source recognises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AnonymousRequests {
    /// The requests are those of `system:anonymous`.
    #[default]
    Allow,
    /// The requests are rejected with 401.
    Deny,
}

/// What becomes of names and groups that begin with `system:`.
///
/// Such names are those of Kubernetes' own parts, and the objects that every server starts with are lenient towards them: whoever
/// is in `system:masters` is exempt from all limits. A source that somebody else feeds must not be able to give them away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SystemNames {
    /// A user of such a name is rejected with 401; such groups are left out.
    #[default]
    Refuse,
    /// Such names and groups are accepted.
    Allow,
}

/// One way to find out who is calling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum IdentitySource {
    /// Headers that a proxy in front has set.
    TrustedHeaders(HeaderIdentity),
    /// The client's certificate.
    ClientCertificate(CertificateIdentity),
    /// A bearer token that is signed.
    Jwt(JwtIdentity),
    /// A bearer token from a file.
    Tokens(TokenIdentity),
    /// A key in a header.
    ApiKey(ApiKeyIdentity),
    /// The client's address.
    Address(AddressIdentity),
}

/// Headers, trusted only from those named here.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HeaderIdentity {
    /// The addresses of the proxies, as `10.0.0.0/8` or `10.1.2.3`.
    pub from_addresses: Vec<Cidr>,
    /// The common names of the proxies' certificates.
    pub from_certificates: Vec<String>,
    /// The header with the user's name.
    #[serde(with = "header")]
    pub user_header: HeaderName,
    /// The header with a group of the user's, once for each.
    #[serde(with = "header")]
    pub group_header: HeaderName,
    /// Whether names and groups may begin with `system:`.
    pub system_names: SystemNames,
}

/// A verified client certificate: its common name is the user, its organisations are the groups.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct CertificateIdentity {
    /// Put before the name.
    pub user_prefix: String,
    /// Put before every group.
    pub group_prefix: String,
    /// Whether names and groups may begin with `system:`.
    pub system_names: SystemNames,
}

/// Signed bearer tokens.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct JwtIdentity {
    /// The keys: a JSON Web Key Set, or public keys in PEM, in a file or at a URL of the issuer. A file is read again when it
    /// changes, a URL is fetched again from time to time. A key is for one algorithm: RS256, PS256, ES256 or `EdDSA` and their
    /// longer variants, never one with a shared secret.
    pub keys: KeysFrom,
    /// The authorities that are trusted for the server of the keys' URL, in PEM. The default is those of the machine.
    pub keys_ca: Option<PathBuf>,
    /// The issuer that a token must name, if any.
    pub issuer: Option<String>,
    /// The audiences of which a token must name one, if there are any here.
    pub audiences: Vec<String>,
    /// The claim with the user's name.
    pub user_claim: String,
    /// The claim with the user's groups: a text or a list of texts.
    pub groups_claim: String,
    /// Put before the name.
    pub user_prefix: String,
    /// Put before every group.
    pub group_prefix: String,
    /// Whether names and groups may begin with `system:`.
    pub system_names: SystemNames,
    /// How many seconds the clocks may differ.
    pub leeway_seconds: u64,
}

/// A file of bearer tokens in Kubernetes' format: `token,user,uid,"group1,group2"`. Read again when it changes.
///
/// Not `#[non_exhaustive]`: it is one file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TokenIdentity {
    /// The file.
    pub file: PathBuf,
}

/// A header with a key, and a file that says whose it is, in the format of token files.
///
/// Not `#[non_exhaustive]`: it is a header and a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ApiKeyIdentity {
    /// The header.
    #[serde(default = "api_key_header", with = "header")]
    pub header: HeaderName,
    /// The file. Read again when it changes.
    pub file: PathBuf,
}

/// The client's address is the user: the one that the connection comes from, or behind trusted proxies the one that they
/// name.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AddressIdentity {
    /// Put before the address to make the user's name.
    pub user_prefix: String,
    /// The groups of all who are known by their address.
    pub groups: Vec<String>,
    /// How many bits of an IPv4 address tell users apart.
    pub ipv4_bits: u8,
    /// How many bits of an IPv6 address tell users apart.
    pub ipv6_bits: u8,
    /// The proxies whose `X-Forwarded-For` is trusted, as `10.0.0.0/8` or `10.1.2.3`. The client is the right-most address
    /// there that is not one of these.
    pub trusted_proxies: Vec<Cidr>,
}

fn api_key_header() -> HeaderName {
    HeaderName::from_static("x-api-key")
}

// === impl IdentityConfig ===

impl Default for IdentityConfig {
    /// Clients are told apart by their addresses.
    fn default() -> Self {
        Self {
            sources: vec![IdentitySource::Address(AddressIdentity::default())],
            anonymous: AnonymousRequests::default(),
            tell_upstream: false,
            open_paths: Vec::new(),
        }
    }
}

impl IdentityConfig {
    /// Shows every path that is set, with the name of its setting.
    pub fn visit_paths(&mut self, see: &mut dyn FnMut(&str, &mut PathBuf)) {
        for (index, source) in self.sources.iter_mut().enumerate() {
            let field = |name: &str| format!("identity.sources[{index}].{name}");
            match source {
                IdentitySource::Jwt(jwt) => {
                    if let KeysFrom::File(path) = &mut jwt.keys {
                        see(&field("jwt.keys"), path);
                    }
                    if let Some(path) = &mut jwt.keys_ca {
                        see(&field("jwt.keysCa"), path);
                    }
                }
                IdentitySource::Tokens(tokens) => see(&field("tokens.file"), &mut tokens.file),
                IdentitySource::ApiKey(key) => see(&field("apiKey.file"), &mut key.file),
                IdentitySource::TrustedHeaders(_)
                | IdentitySource::ClientCertificate(_)
                | IdentitySource::Address(_) => {}
            }
        }
    }
}

// === impl HeaderIdentity ===

impl Default for HeaderIdentity {
    fn default() -> Self {
        Self {
            from_addresses: Vec::new(),
            from_certificates: Vec::new(),
            user_header: HeaderName::from_static("x-remote-user"),
            group_header: HeaderName::from_static("x-remote-group"),
            system_names: SystemNames::default(),
        }
    }
}

// === impl JwtIdentity ===

impl Default for JwtIdentity {
    fn default() -> Self {
        Self {
            keys: KeysFrom::default(),
            keys_ca: None,
            issuer: None,
            audiences: Vec::new(),
            user_claim: "sub".to_owned(),
            groups_claim: "groups".to_owned(),
            user_prefix: String::new(),
            group_prefix: String::new(),
            system_names: SystemNames::default(),
            leeway_seconds: 60,
        }
    }
}

// === impl ApiKeyIdentity ===

impl ApiKeyIdentity {
    /// Keys in this header, which this file lists.
    pub fn new(header: HeaderName, file: impl Into<PathBuf>) -> Self {
        Self { header, file: file.into() }
    }
}

// === impl AddressIdentity ===

impl Default for AddressIdentity {
    fn default() -> Self {
        Self {
            user_prefix: "address:".to_owned(),
            groups: Vec::new(),
            ipv4_bits: 32,
            ipv6_bits: 64,
            trusted_proxies: Vec::new(),
        }
    }
}
