//! `Connection`: what is known of a client's connection from its beginning.

use std::rc::Rc;

use crate::forward::Provenance;
use crate::identity::PeerIdentity;
use crate::peer::Peer;
use crate::worker::Worker;

/// What is known of a client's connection, for all requests on it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) worker: Rc<Worker>,
    pub(crate) identity: PeerIdentity,
    pub(crate) provenance: Provenance,
}

// === impl Connection ===

impl Connection {
    pub(crate) fn new(worker: &Rc<Worker>, peer: Peer) -> Rc<Self> {
        let provenance = Provenance::new(&peer, worker.identification.is_trusted_proxy(&peer));
        let identity = worker.identification.of(peer);
        Rc::new(Self { worker: Rc::clone(worker), identity, provenance })
    }
}
