//! `HeldFlow`: the flow control of a worker for requests that Envoy forwards. A request holds its seat until Envoy reports its
//! end.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use evenkeel::FlowControl;
use evenkeel::digest::Digested;
use evenkeel::identify::NoIdentity;
use evenkeel::service::{AdmittedRequest, FlowFuture, FlowService, PassAdmitted};
use evenkeel_engine::User;
use evenkeel_engine::digest::DigestError;
use evenkeel_identity::{RequestRules, RouteMatch};
use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame};
use tokio::sync::oneshot;
use tower_layer::Layer;

use crate::identity::Denied;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::ErrorResponses;
use crate::proxy::exchange::Exchange;
use crate::proxy::forward::{attach_facts, flow_layer, known_identity};

/// The flow control of a worker, under the settings of one time, for requests that Envoy forwards.
#[derive(Debug)]
pub(crate) struct HeldFlow {
    service: FlowService<Hold, NoIdentity, RequestRules, RequestRules, PassAdmitted>,
    flow: FlowControl,
}

/// The parts of a request that go with its head through the flow control.
#[derive(Debug)]
pub(super) struct HeldRequest {
    pub(super) connection: Rc<Connection>,
    pub(super) exchange: Rc<Exchange>,
    /// Gets the headers before and after, when the request has its seat.
    pub(super) started: oneshot::Sender<Started>,
    /// Tells the status of the response, if Envoy says it.
    pub(super) responded: oneshot::Receiver<StatusCode>,
}

/// A request that has its seat.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) headers: HeaderMap,
    /// The headers as the upstream shall see them.
    pub(super) forwarded: HeaderMap,
}

/// Keeps a request that has been let in until Envoy knows its response, or for ever.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold;

/// The body of a response that Envoy forwards. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct ForwardedBody;

/// A request on its way through the flow control, and at its upstream.
pub(super) type HeldFuture = FlowFuture<Hold, AdmittedRequest<HeldRequest, RouteMatch>, ForwardedBody>;

// === impl HeldFlow ===

impl HeldFlow {
    pub(crate) fn new(flow: &FlowControl, rules: &RequestRules, errors: &Arc<ErrorResponses>) -> Self {
        Self { service: flow_layer(flow, rules, errors).layer(Hold), flow: flow.clone() }
    }

    /// The flow control itself.
    pub(super) fn control(&self) -> &FlowControl {
        &self.flow
    }

    /// A request that has been interpreted and authenticated reaches the flow control.
    pub(super) fn call(
        &self,
        digested: Result<Digested<'_, RouteMatch>, DigestError>,
        user: &Result<Arc<User>, Denied>,
        mut parts: Parts,
        held: HeldRequest,
    ) -> HeldFuture {
        attach_facts(&self.flow, &mut parts, &held.exchange, &held.connection);
        self.service.call_digested(&known_identity(user), digested, Request::from_parts(parts, held))
    }
}

// === impl Hold ===

impl tower_service::Service<AdmittedRequest<HeldRequest, RouteMatch>> for Hold {
    type Response = Response<ForwardedBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: AdmittedRequest<HeldRequest, RouteMatch>) -> Self::Future {
        let AdmittedRequest { request, admitted } = admitted;
        let (parts, HeldRequest { connection, exchange, started, responded }) = request.into_parts();
        exchange.note(|record| record.note_admitted(&admitted));
        let mut forwarded = parts.headers.clone();
        connection.identity.sanitize_headers(&mut forwarded, &admitted.user);
        // If this fails, the stream has ended.
        let _ = started.send(Started { headers: parts.headers, forwarded });
        Box::pin(async move {
            let Ok(status) = responded.await else { return std::future::pending().await };
            let mut response = Response::new(ForwardedBody);
            *response.status_mut() = status;
            Ok(response)
        })
    }
}

// === impl ForwardedBody ===

impl Body for ForwardedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Pending
    }
}
