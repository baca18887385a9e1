//! Where the gateway listens.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use super::{Cidr, ListenAddress, SocketMode};

/// An address that clients connect to.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ListenConfig {
    /// The address, or a name that has one. The default is port 8080, for this machine only.
    pub address: ListenAddress,
    /// The certificate to show, if connections are encrypted.
    pub tls: Option<ServerTls>,
    /// Where TCP balancers connect from that send the header of the PROXY protocol (version 1 or 2). Connections from there have
    /// to begin with one; those from elsewhere must not. The default is nowhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proxy_protocol_from: Vec<Cidr>,
    /// Who may connect to a Unix socket, as permissions of its file. The default is `0600`, the gateway's own user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SocketMode>,
}

/// How a listener speaks TLS. The files are read again when they change.
///
/// Not `#[non_exhaustive]`: programs that set up a listener make it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ServerTls {
    /// The certificate and those that lead to its authority, in PEM.
    pub certificate: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
    /// The authorities whose client certificates are trusted, in PEM. Without it no client is asked for one. A client
    /// may come without a certificate; one with a certificate that is not trusted is refused.
    #[serde(default)]
    pub client_ca: Option<PathBuf>,
}

/// The admin endpoint.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct AdminConfig {
    /// The address, or none if there shall be no such listener. The default is port 9901, for this machine only.
    pub address: Option<ListenAddress>,
    /// The names by which it is reached, beside its addresses and `localhost`. Requests for other names are refused, so
    /// that no web page can read it under a name of its own (DNS rebinding). `*` allows every name.
    pub hosts: Vec<String>,
    /// A private file with the token that clients have to send. An address that other machines can reach needs one, here or in
    /// the environment variable `EVENKEEL_ADMIN_TOKEN`.
    pub token_file: Option<PathBuf>,
}

/// `admin: null` says that there shall be none.
pub(super) fn admin_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AdminConfig, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(AdminConfig { address: None, ..AdminConfig::default() }))
}

// === impl ListenConfig ===

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)).into(),
            tls: None,
            proxy_protocol_from: Vec::new(),
            mode: None,
        }
    }
}

// === impl AdminConfig ===

impl Default for AdminConfig {
    fn default() -> Self {
        Self {
            address: Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 9901)).into()),
            hosts: Vec::new(),
            token_file: None,
        }
    }
}
