//! `HostIdentity`: identifies the senders of requests on a connection to a hosted service, and the client that the connection
//! counts for.

use std::sync::Arc;

use evenkeel::identify::{Identify, Unidentified};
use evenkeel_engine::User;
use http::StatusCode;
use http::request::Parts;

use super::Refusals;
use crate::identity::PeerIdentity;
use crate::proxy::worker::HostedConnection;

/// Finds out who sends the requests of one connection. The first request that proves it counts the connection for that user,
/// and no longer for its address. Clones are cheap.
#[derive(Debug, Clone)]
pub struct HostIdentity {
    pub(super) peer: PeerIdentity,
    pub(super) counted: Arc<HostedConnection>,
    pub(super) refusals: Refusals,
}

// === impl HostIdentity ===

impl Identify for HostIdentity {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        let user = self.peer.authenticate(parts).map_err(|denied| {
            self.refusals.note_denied(denied.reason, self.peer.address(), parts.uri.path());
            denied.response()
        })?;
        if self.counted.identify(&user) {
            return Ok(user);
        }
        self.refusals.note(self.peer.address());
        Err(Unidentified::new(StatusCode::TOO_MANY_REQUESTS, "this user has too many connections; close some of them"))
    }
}
