//! `PendingResponse`: the response that a client waits for. When the client disconnects, the request is left to the worker.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use http::{Response, StatusCode};

use super::buffered_body::BufferedBody;
use super::revoked_end::RevokedEnd;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::{Failure, LlmApi};
use crate::proxy::exchange::Exchange;
use crate::proxy::forward::RequestFuture;

/// The response to a request on its way through the flow control and to an upstream.
///
/// Dropping it gives the request up. If an upstream works on it, the request keeps its seat until that has ended
/// ([`Abandoned`](crate::proxy::abandoned::Abandoned)).
pub(super) struct PendingResponse {
    /// `None` when the response has come.
    future: Option<RequestFuture>,
    exchange: Rc<Exchange>,
    connection: Rc<Connection>,
    /// The API whose streams have errors, if it is one of them.
    api: Option<LlmApi>,
}

// === impl PendingResponse ===

impl PendingResponse {
    pub(super) fn new(
        future: RequestFuture,
        exchange: &Rc<Exchange>,
        connection: &Rc<Connection>,
        api: Option<LlmApi>,
    ) -> Self {
        Self { future: Some(future), exchange: Rc::clone(exchange), connection: Rc::clone(connection), api }
    }

    /// The time for the whole request is over: one that waits leaves its queue as a request that timed out.
    pub(super) fn expire(&mut self) -> Failure {
        if let Some(future) = &mut self.future {
            Pin::new(future).expire();
        }
        Failure::TotalTimeout
    }
}

impl Future for PendingResponse {
    /// The response, or why there is none because of the client.
    type Output = Result<Response<BufferedBody>, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let Some(future) = &mut this.future else { return Poll::Pending };
        if let Poll::Ready(Ok(response)) = Pin::new(&mut *future).poll(context) {
            this.future = None;
            let is_revocable = response.body().is_revocable();
            let end = is_revocable.then(|| Box::new(RevokedEnd::new(this.api, response.headers())));
            let response = response.map(|body| BufferedBody::passed(body, &this.exchange, &this.connection, end));
            return Poll::Ready(Ok(response));
        }
        if future.poll_revoked(context).is_ready() {
            // Dropped without waiting for the upstream: the seats are needed now.
            this.future = None;
            return Poll::Ready(Err(Failure::Revoked));
        }
        match this.exchange.failure() {
            Some(failure) => {
                if failure.status() == StatusCode::REQUEST_TIMEOUT {
                    this.connection.worker.metrics.client_too_slow();
                }
                Poll::Ready(Err(failure))
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.connection.worker.abandoned.request(future, &self.exchange);
        }
    }
}
