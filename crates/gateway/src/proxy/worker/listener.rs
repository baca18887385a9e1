//! `Listening`: a socket that a worker accepts connections on, and how.

use std::sync::Arc;

use crate::config::Cidr;
use crate::sockets::ListenSocket;
use crate::tls::ListenerTls;

/// A socket that a worker accepts connections on.
#[derive(Debug)]
pub(crate) struct Listening {
    pub(crate) socket: ListenSocket,
    pub(crate) rules: Arc<ListenerRules>,
}

/// How the connections of a listener begin.
#[derive(Debug)]
pub(crate) struct ListenerRules {
    pub(crate) tls: Option<Arc<ListenerTls>>,
    /// The sources that have to send a header of the PROXY protocol.
    pub(crate) proxy_protocol_from: Vec<Cidr>,
    pub(crate) spoken: Spoken,
}

/// The protocol on the connections of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spoken {
    /// HTTP, by clients.
    Http,
    /// The external processing protocol, by Envoy.
    ExtProc,
}
