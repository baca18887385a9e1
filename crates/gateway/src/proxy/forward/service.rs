//! The flow control of a worker, and the service inside of it, which forwards requests.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use evenkeel::FlowControl;
use evenkeel::digest::Digested;
use evenkeel::identify::{ClientAddress, NoIdentity};
use evenkeel::service::{AdmittedRequest, FlowFuture, FlowService, PassAdmitted};
use evenkeel_engine::User;
use evenkeel_engine::digest::DigestError;
use evenkeel_identity::{RequestRules, RouteMatch};
use http::request::Parts;
use http::{Request, Response};
use tower_layer::Layer;

use super::attempt::Attempts;
use super::fields::remove_named;
use super::trailers::TrailerGuard;
use crate::config::WhenClientLeaves;
use crate::http1::HeadFlags;
use crate::identity::Denied;
use crate::proxy::error_response::{ErrorResponses, Failure, is_grpc};
use crate::proxy::exchange::{Inbound, OnLeave};
use crate::proxy::response_body::ResponseBody;
use crate::proxy::service_times::Started;

/// Forwards requests that the flow control has let in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forward;

/// The flow control of a worker, under the settings of one time. All connections of the worker share it; who is calling comes
/// with each request.
#[derive(Debug)]
pub(crate) struct WorkerFlow {
    service: FlowService<Forward, NoIdentity, RequestRules, RequestRules, PassAdmitted>,
    flow: FlowControl,
}

/// A request on its way through the flow control and to an upstream.
pub(crate) type RequestFuture = FlowFuture<Forward, AdmittedRequest<Inbound, RouteMatch>, ResponseBody>;

// === impl WorkerFlow ===

impl WorkerFlow {
    pub(crate) fn new(flow: &FlowControl, rules: &RequestRules, errors: &Arc<ErrorResponses>) -> Self {
        let layer = flow
            .layer_without_identity()
            // Each source of identities says whether it may give such names.
            .allow_system_names()
            .digest(rules.clone())
            .work(rules.clone())
            .pass_admitted();
        let flow = flow.clone();
        if errors.is_of_flow_control() {
            return Self { service: layer.layer(Forward), flow };
        }
        let errors = Arc::clone(errors);
        let layer = layer.on_refusal(move |refusal, request| errors.refuse(refusal, &request.headers));
        Self { service: layer.layer(Forward), flow }
    }

    /// A request that has been interpreted and authenticated reaches the flow control.
    pub(crate) fn call(
        &self,
        digested: Result<Digested<'_, RouteMatch>, DigestError>,
        user: &Result<Arc<User>, Denied>,
        mut parts: Parts,
        inbound: Inbound,
    ) -> RequestFuture {
        inbound.exchange.note(|record| record.time_seats(&mut parts.extensions));
        if self.flow.asks_for_addresses() {
            let address = inbound.connection.identity.client_address(&parts.headers);
            parts.extensions.insert(ClientAddress::from(address));
        }
        let identify = |_: &Parts| match user {
            Ok(user) => Ok(Arc::clone(user)),
            Err(denied) => Err(denied.response()),
        };
        self.service.call_digested(&identify, digested, Request::from_parts(parts, inbound))
    }
}

// === impl Forward ===

impl tower_service::Service<AdmittedRequest<Inbound, RouteMatch>> for Forward {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: AdmittedRequest<Inbound, RouteMatch>) -> Self::Future {
        match prepare(admitted) {
            Ok(attempts) => Box::pin(async move { Ok(attempts.run().await) }),
            Err(response) => Box::pin(std::future::ready(Ok(*response))),
        }
    }
}

/// Turns a request into what is sent to an upstream, or responds to it if it must not be sent.
fn prepare(admitted: AdmittedRequest<Inbound, RouteMatch>) -> Result<Attempts, Box<Response<ResponseBody>>> {
    let AdmittedRequest { request, admitted } = admitted;
    let (mut parts, Inbound { connection, mut body, exchange, is_upgrade, flags }) = request.into_parts();
    exchange.note(|record| record.note_admitted(&admitted));
    let (user, takes_seat) = (admitted.user, admitted.seats > 0);
    if !connection.client.identify(&user) {
        connection.worker.metrics.client_refused();
        let failure = Failure::TooManyConnections;
        exchange.note(|record| record.note_refused(failure));
        return Err(Box::new(failure.response(&parts.headers, &connection.worker.errors)));
    }
    if body.is_too_large() {
        return Err(Box::new(Failure::BodyTooLarge.response(&parts.headers, &connection.worker.errors)));
    }
    if flags.has(HeadFlags::CONNECTION) {
        remove_named(&mut parts.headers);
    }
    let is_grpc = || flags.has(HeadFlags::TYPE) && is_grpc(&parts.headers);
    if connection.worker.rules.when_client_leaves(admitted.extra, is_grpc) == WhenClientLeaves::Cancel {
        exchange.set_on_leave(OnLeave::Cancel(Started::now(&user.name, parts.uri.path())));
    }
    connection.identity.sanitize_headers(&mut parts.headers, &user);
    // A request that is not sampled is passed on as it came.
    if let Some(ids) = exchange.span_ids() {
        ids.propagate(&mut parts.headers);
        exchange.note(|record| record.note_forwarded(&parts.uri));
    }
    body.start(connection.worker.config.timeouts.first_message, || TrailerGuard {
        identity: connection.identity.clone(),
        user,
    });
    // The request may have waited for long, and upstreams may be gone since.
    let worker = connection.worker.latest();
    Ok(Attempts { connection, worker, exchange, parts, flags, is_upgrade, takes_seat, body })
}
