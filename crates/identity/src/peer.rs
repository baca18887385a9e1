//! `Peer`: the client of a connection, as far as the connection itself tells.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

/// The other end of a client's connection. Made once for a connection, and looked at by every request on it.
///
/// Not `#[non_exhaustive]`: code that accepts connections makes it.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Where the connection comes from.
    pub address: SocketAddr,
    /// Whether the connection is one of TLS.
    pub transport: Transport,
    /// The owner of the client's certificate, if the listener asked for one and the client has shown a trusted one.
    pub certificate: Option<Arc<ClientCertificate>>,
}

/// How requests arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// As plain text.
    Plain,
    /// Encrypted.
    Tls,
}

/// The owner of a verified client certificate.
///
/// Not `#[non_exhaustive]`: code that accepts connections makes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientCertificate {
    /// The common name of the subject: the user. A certificate without one identifies nobody.
    pub common_name: Option<String>,
    /// The organisations of the subject: the user's groups.
    pub organizations: Vec<String>,
    /// When it expires. After that, requests of the connection get a 401.
    pub not_after: Option<SystemTime>,
}

// === impl Peer ===

impl Peer {
    /// A peer of which only the address is known.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, transport: Transport::Plain, certificate: None }
    }
}
