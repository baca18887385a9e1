//! `RequestContext`: what is known of a request before the API sees it.

use std::sync::Arc;

use evenkeel_engine::User;

use crate::in_flight::ConnectionInFlight;
use crate::target::Target;

/// The facts about a request that are known before the API sees it. They travel as an extension of the request.
#[derive(Debug, Clone)]
pub(crate) struct RequestContext {
    /// The effective user.
    pub(crate) user: Arc<User>,
    /// The user who sent the request, if it was sent as another user.
    pub(crate) impersonator: Option<Arc<User>>,
    pub(crate) target: Target,
    /// The room for responses on the connection.
    pub(crate) in_flight: ConnectionInFlight,
}
