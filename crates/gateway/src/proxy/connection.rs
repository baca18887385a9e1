//! `Connection`: a client's connection, with its client and the settings that it began with.

use std::rc::Rc;

use http::{HeaderMap, HeaderValue};

use crate::config::RequestIdFrom;
use crate::identity::Peer;
use crate::identity::PeerIdentity;
use crate::proxy::forward::Provenance;
use crate::proxy::worker::{ClientQuota, Worker};

/// A client's connection, as all requests on it see it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) worker: Rc<Worker>,
    pub(crate) identity: PeerIdentity,
    pub(crate) provenance: Provenance,
    /// The client that it is counted for.
    pub(crate) client: ClientQuota,
    /// The proxy that forwards its requests.
    pub(crate) forwarder: Forwarder,
    peer: Peer,
}

/// The proxy that forwards a request which has been let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwarder {
    Gateway,
    /// An Envoy, which asks first.
    Envoy,
}

// === impl Connection ===

impl Connection {
    /// `None` if the client has too many connections.
    pub(crate) fn new(worker: &Rc<Worker>, peer: Peer) -> Option<Rc<Self>> {
        let is_trusted_proxy = worker.identification.is_trusted_proxy(&peer);
        let Some(client) = worker.clients.open(peer.address.ip(), is_trusted_proxy) else {
            worker.metrics.client_refused();
            if worker.may_warn() {
                tracing::warn!(client = %peer.address.ip(), "the client has too many connections; a new one is refused");
            }
            return None;
        };
        let provenance = Provenance::new(&peer, is_trusted_proxy);
        let identity = worker.identification.of(peer.clone());
        let forwarder = Forwarder::Gateway;
        Some(Rc::new(Self { worker: Rc::clone(worker), identity, provenance, client, forwarder, peer }))
    }

    /// The connection of this client to an Envoy, which names the client of each request. It does not count against the limits of
    /// connections, which Envoy has itself.
    pub(crate) fn of_envoy(worker: &Rc<Worker>, client: Peer) -> Rc<Self> {
        let identity = worker.identification.of(client.clone());
        let provenance = Provenance::new(&client, identity.is_trusted_proxy());
        let (uncounted, forwarder) = (worker.clients.uncounted(), Forwarder::Envoy);
        Rc::new(Self { worker: Rc::clone(worker), identity, provenance, client: uncounted, forwarder, peer: client })
    }

    /// The peer of the connection.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The id of a request with these headers: the one that they have, if its client may choose it, or a new one.
    pub(crate) fn request_id(&self, headers: &HeaderMap) -> HeaderValue {
        let ids = &self.worker.request_ids;
        match self.worker.config.requests.request_id_from {
            RequestIdFrom::Anyone => ids.adopt(headers),
            RequestIdFrom::TrustedProxies if self.identity.is_trusted_proxy() => ids.adopt(headers),
            _ => ids.make(),
        }
    }

    /// The same connection under the settings in effect, if those have changed.
    pub(crate) fn next_generation(&self) -> Option<Rc<Self>> {
        if !self.worker.is_outdated() {
            return None;
        }
        let worker = self.worker.latest();
        let identity = worker.identification.of(self.peer.clone());
        let provenance = Provenance::new(&self.peer, identity.is_trusted_proxy());
        let (client, peer) = (self.client.clone(), self.peer.clone());
        Some(Rc::new(Self { worker, identity, provenance, client, forwarder: self.forwarder, peer }))
    }
}
