//! `Arrival`: a request that has just arrived: what it asks for, and who sent it. Both are found out once, and in this order.

use std::sync::Arc;
use std::time::Duration;

use evenkeel::digest::Digested;
use evenkeel::identify::anonymous;
use evenkeel_engine::User;
use evenkeel_engine::digest::DigestError;
use evenkeel_identity::{RouteMatch, Target};
use http::request::Parts;

use crate::config::{Preflights, RouteTimeouts, WhenClientLeaves};
use crate::identity::Denied;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::{Failure, is_grpc, is_preflight};
use crate::proxy::exchange::ExchangeTimeouts;
use crate::proxy::pool::FoundPool;
use crate::proxy::request_body::Reception;

/// A request that has arrived and has not reached the flow control.
#[derive(Debug)]
pub(crate) struct Arrival<'a> {
    pub(crate) digested: Result<Digested<'a, RouteMatch>, DigestError>,
    /// Who sent it. A request that cannot be interpreted is not authenticated: it counts as anonymous.
    pub(crate) user: Result<Arc<User>, Denied>,
    /// The request as it was interpreted.
    pub(crate) target: &'a Target,
    /// The service that it belongs to.
    pub(crate) pool: Result<FoundPool, Failure>,
    is_long_running: bool,
    /// The timeouts of the request's route.
    timeouts: RouteTimeouts,
}

/// The reason for rejecting a path that could evade a flow schema.
const AMBIGUOUS: &str =
    "has an encoded slash, and belongs to another flow schema with a plain one; send `/`, or set a route for it";

/// Whether a request is a preflight that passes without identity.
fn passes_preflight(connection: &Connection, parts: &Parts) -> bool {
    connection.worker.config.cors.preflights == Preflights::Pass && is_preflight(&parts.method, &parts.headers)
}

// === impl Arrival ===

impl<'a> Arrival<'a> {
    /// Interprets the request with this target, and authenticates its client.
    pub(crate) fn new(connection: &'a Connection, target: &'a Target, parts: &Parts) -> Self {
        let rules = &connection.worker.rules;
        let digested = rules.digest_target(target);
        let is_long_running = digested.as_ref().is_ok_and(|digested| rules.is_long_running(digested));
        let user = match &digested {
            // Browsers send these without credentials.
            Ok(_) if passes_preflight(connection, parts) => Ok(anonymous()),
            Ok(_) => connection.identity.authenticate(parts),
            Err(_) => Ok(anonymous()),
        };
        let digested = match (digested, &user) {
            (Ok(digested), Ok(user)) if is_ambiguous(connection, target, user, &digested) => {
                Err(DigestError::Path { problem: AMBIGUOUS })
            }
            (digested, _) => digested,
        };
        let timeouts = digested.as_ref().map(|digested| rules.timeouts(digested.extra)).unwrap_or_default();
        let pool = connection.worker.pools.find(parts, target, connection.forwarder);
        Self { digested, user, target, pool, is_long_running, timeouts }
    }

    /// Whether the request gives its seats back as soon as there is a response.
    pub(crate) fn is_long_running(&self) -> bool {
        self.is_long_running
    }

    /// How long the upstream and the client of the request may take.
    pub(crate) fn timeouts(&self, connection: &Connection) -> ExchangeTimeouts {
        ExchangeTimeouts::new(&connection.worker.config.timeouts, self.timeouts)
    }

    /// How long the request may take in all. Zero means that there is no limit, as for requests that run for long by their
    /// nature, unless the route says something else.
    pub(crate) fn total_after(&self, connection: &Connection) -> Duration {
        let of_all = if self.is_long_running { Duration::ZERO } else { connection.worker.config.timeouts.total };
        self.timeouts.total.unwrap_or(of_all)
    }

    /// How much of the body is received before the request asks for a seat; nothing if the request will be rejected.
    pub(crate) fn reception(&self, parts: &Parts) -> Reception {
        if self.digested.is_err() || self.user.is_err() || self.is_long_running {
            return Reception::Nothing;
        }
        let Ok(FoundPool { pool, .. }) = &self.pool else { return Reception::Nothing };
        // A call is a stream only at an upstream that has streams. Otherwise any request could pretend to be a call.
        let is_call = is_grpc(&parts.headers) && pool.upstreams.may_speak_http2();
        if is_call { Reception::FirstMessage } else { Reception::Whole }
    }

    /// Whether its body says which model it is for, and its cost is counted in tokens (LM-1).
    pub(crate) fn counts_tokens(&self, connection: &Connection) -> bool {
        let Ok(digested) = &self.digested else { return false };
        connection.worker.rules.counts_tokens(digested.extra) && self.user.is_ok()
    }

    /// Whether the upstream is to stop working on the request when its client leaves.
    pub(crate) fn ends_with_client(&self, connection: &Connection) -> bool {
        let Ok(digested) = &self.digested else { return false };
        connection.worker.rules.when_client_leaves(digested.extra, || false) == WhenClientLeaves::Cancel
    }

    /// The model that the request is for is its namespace (LM-2).
    pub(crate) fn set_namespace(&mut self, namespace: String) {
        if let Ok(digested) = &mut self.digested {
            digested.info.namespace = namespace.into();
        }
    }

    /// The user, if it is known.
    pub(crate) fn user(&self) -> Option<Arc<User>> {
        if self.digested.is_ok() { self.user.as_ref().ok().cloned() } else { None }
    }
}

/// Whether it depends on the service which flow schema a request belongs to: some take an encoded slash for a part of a name, others for a
/// slash. A schema that blocks `/admin` holds in front of both.
fn is_ambiguous(connection: &Connection, target: &Target, user: &User, digested: &Digested<'_, RouteMatch>) -> bool {
    let Some(other) = connection.worker.rules.with_plain_slashes(target) else { return false };
    !connection.worker.flow_control.belong_together(user, &digested.info, &other)
}
