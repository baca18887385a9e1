//! Where Envoy asks what to do with its requests.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::{ListenAddress, ListenConfig, ServerTls, SocketMode};

/// The service for Envoy's external processing filter.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ExtProcConfig {
    /// The address, or a name that has one. The default is port 9902, for this machine only.
    pub address: ListenAddress,
    /// The certificate to show, if connections are encrypted. With `clientCa`, Envoy has to show one too.
    pub tls: Option<ServerTls>,
    /// Who may connect to a Unix socket, as permissions of its file. The default is `0600`, the gateway's own user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<SocketMode>,
    /// Whether Envoy is asked for the status of every response. That costs a message more for each request.
    pub statuses: bool,
}

// === impl ExtProcConfig ===

impl ExtProcConfig {
    /// The listener.
    pub(crate) fn listen(&self) -> ListenConfig {
        let Self { address, tls, mode, .. } = self.clone();
        ListenConfig { address, tls, mode, ..ListenConfig::default() }
    }
}

impl Default for ExtProcConfig {
    fn default() -> Self {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 9902)).into();
        Self { address, tls: None, mode: None, statuses: false }
    }
}
