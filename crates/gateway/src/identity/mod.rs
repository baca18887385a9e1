//! Who is calling: the sources of the configuration, asked one after the other.

use std::sync::Arc;

use evenkeel::Identify;
use evenkeel::identify::{Unidentified, anonymous};
use evenkeel_engine::User;
use http::HeaderMap;
use http::request::Parts;

use crate::config::IdentityConfig;
use crate::peer::Peer;

/// All ways to find out who is calling, shared by all workers.
#[derive(Debug)]
pub struct Identification {}

/// Finds out who sends the requests of one connection.
#[derive(Debug, Clone)]
pub struct PeerIdentity {
    _shared: Arc<Identification>,
    _peer: Peer,
}

/// The sources could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct IdentityError(
    /// What is wrong, where, and what to do.
    pub String,
);

// === impl Identification ===

impl Identification {
    /// Sets the sources up, and reads the files that they name.
    pub fn open(_config: &IdentityConfig) -> Result<Arc<Self>, IdentityError> {
        Ok(Arc::new(Self {}))
    }

    /// For the requests of this connection.
    pub fn of(self: &Arc<Self>, peer: Peer) -> PeerIdentity {
        PeerIdentity { _shared: Arc::clone(self), _peer: peer }
    }
}

// === impl PeerIdentity ===

impl PeerIdentity {
    /// Takes out of a request what the upstream must not believe, and tells it who is calling if it shall know.
    pub fn cleanse(&self, _headers: &mut HeaderMap, _user: &User) {}
}

impl Identify for PeerIdentity {
    fn identify(&self, _parts: &Parts) -> Result<Arc<User>, Unidentified> {
        Ok(anonymous())
    }
}
