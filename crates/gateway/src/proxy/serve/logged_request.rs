//! Notes requests that are rejected: a line in the log, and a word in the record of the request.

use evenkeel::Rejected;
use evenkeel_engine::User;
use evenkeel_identity::Target;
use http::Response;

use crate::observe::log::{DeniedRequest, RejectedRequest};
use crate::proxy::arrival::Arrival;
use crate::proxy::connection::Connection;
use crate::proxy::exchange::Exchange;

/// The request that a line is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoggedRequest<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) exchange: &'a Exchange,
    pub(crate) target: &'a Target,
}

// === impl LoggedRequest ===

impl LoggedRequest<'_> {
    /// Notes the facts that are known on arrival, and logs a request that was not authenticated.
    pub(crate) fn note_arrival(self, arrival: &Arrival<'_>) {
        let worker = &self.connection.worker;
        self.exchange.note(|record| record.note_arrival(arrival, worker));
        if let (Ok(_), Err(denied)) = (&arrival.digested, &arrival.user) {
            worker.rejections.denied(|| DeniedRequest {
                request_id: self.exchange.id.to_str().unwrap_or_default(),
                client: self.connection.identity.address(),
                method: self.target.method().as_str(),
                path: self.target.uri_as_sent().path(),
                reason: denied.reason.as_str(),
            });
        }
    }

    /// Notes that the request was rejected, if this response says so.
    pub(crate) fn note_response<B>(self, response: &Response<B>, user: Option<&User>) {
        let Some(rejected) = response.extensions().get::<Rejected>() else { return };
        self.exchange.note(|record| record.note_rejected(rejected));
        self.connection.worker.rejections.rejected(|| RejectedRequest {
            request_id: self.exchange.id.to_str().unwrap_or_default(),
            user: user.map_or("", |user| &user.name),
            method: self.target.method().as_str(),
            path: self.target.uri_as_sent().path(),
            flow_schema: rejected.flow_schema(),
            priority_level: rejected.priority_level(),
            reason: rejected.reason.as_str(),
            retry_after: rejected.retry_after,
        });
    }
}
