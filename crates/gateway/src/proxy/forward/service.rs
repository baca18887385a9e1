//! The flow control of a worker, and the service inside of it, which forwards requests.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use evenkeel::digest::Digested;
use evenkeel::identify::{ClientAddress, Identify, NoIdentity};
use evenkeel::service::{AdmittedRequest, FlowFuture, FlowService, NotFailed, PassAdmitted};
use evenkeel::{FlowControl, FlowLayer};
use evenkeel_engine::User;
use evenkeel_engine::digest::DigestError;
use evenkeel_identity::{RequestRules, RouteMatch, set_path};
use http::header::ACCEPT_ENCODING;
use http::request::Parts;
use http::{Request, Response};
use tower_layer::Layer;

use super::attempt::Attempts;
use super::fields::remove_named;
use super::trailers::TrailerGuard;
use crate::config::WhenClientLeaves;
use crate::http1::HeadFlags;
use crate::identity::Denied;
use crate::llm::{ASKS_FOR_USAGE, LlmRequest, TokenSource, place_to_ask};
use crate::proxy::connection::Connection;
use crate::proxy::error_response::{ErrorResponses, Failure, is_grpc};
use crate::proxy::exchange::{Exchange, Inbound, OnLeave};
use crate::proxy::pool::WorkerPool;
use crate::proxy::request_body::RequestBody;
use crate::proxy::response_body::ResponseBody;
use crate::proxy::service_times::Started;

/// Forwards requests that the flow control has let in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forward;

/// The flow control of a worker, under the settings of one time. All connections of the worker share it; the identity comes with
/// each request.
#[derive(Debug)]
pub(crate) struct WorkerFlow {
    service: FlowService<Forward, NoIdentity, RequestRules, RequestRules, PassAdmitted>,
    flow: FlowControl,
}

/// The parts of a request that go with its head through the flow control, and the pool that it belongs to.
#[derive(Debug)]
pub(crate) struct PoolRequest {
    pub(crate) inbound: Inbound,
    pub(crate) pool: Rc<WorkerPool>,
    /// The path for the upstream, if the service replaces a part of it.
    pub(crate) new_path: Option<String>,
}

/// A request on its way through the flow control and to an upstream.
pub(crate) type RequestFuture = FlowFuture<Forward, AdmittedRequest<PoolRequest, RouteMatch>, ResponseBody>;

// === impl WorkerFlow ===

impl WorkerFlow {
    pub(crate) fn new(flow: &FlowControl, rules: &RequestRules, errors: &Arc<ErrorResponses>) -> Self {
        Self { service: flow_layer(flow, rules, errors).layer(Forward), flow: flow.clone() }
    }

    /// When the clock began that the flow control decides by.
    pub(crate) fn clock_start(&self) -> Option<Instant> {
        self.flow.clock_start()
    }

    /// A request that has been interpreted and authenticated reaches the flow control.
    pub(crate) fn call(
        &self,
        digested: Result<Digested<'_, RouteMatch>, DigestError>,
        user: &Result<Arc<User>, Denied>,
        mut parts: Parts,
        request: PoolRequest,
    ) -> RequestFuture {
        let inbound = &request.inbound;
        attach_facts(&self.flow, &mut parts, &inbound.exchange, &inbound.connection);
        self.service.call_digested(&known_identity(user), digested, Request::from_parts(parts, request))
    }
}

/// The layer of a worker's flow control. Who is calling comes with each request.
pub(crate) fn flow_layer(
    flow: &FlowControl,
    rules: &RequestRules,
    errors: &Arc<ErrorResponses>,
) -> FlowLayer<NoIdentity, RequestRules, RequestRules, PassAdmitted> {
    let layer = flow
        .layer_without_identity()
        // Each source of identities says whether it may give such names.
        .allow_system_names()
        .digest(rules.clone())
        .work(rules.clone())
        .count_cost(TokenSource)
        .leave_revoked()
        .pass_admitted();
    let layer = if errors.tells_rates() { layer.rate_limit_fields() } else { layer };
    let layer = if errors.tells_waits() { layer.wait_fields() } else { layer };
    if errors.is_of_flow_control() {
        return layer;
    }
    let errors = Arc::clone(errors);
    layer.on_refusal(move |refusal, request| errors.refuse(refusal, request))
}

/// Puts the facts that the flow control needs beyond the head of a request into its extensions.
pub(crate) fn attach_facts(flow: &FlowControl, parts: &mut Parts, exchange: &Exchange, connection: &Connection) {
    exchange.note(|record| record.time_seats(&mut parts.extensions));
    if flow.asks_for_addresses() {
        let address = connection.identity.client_address(&parts.headers);
        parts.extensions.insert(ClientAddress::from(address));
    }
}

/// The identity of a request that has been authenticated before.
pub(crate) fn known_identity(user: &Result<Arc<User>, Denied>) -> impl Identify + '_ {
    |_: &Parts| match user {
        Ok(user) => Ok(Arc::clone(user)),
        Err(denied) => Err(denied.response()),
    }
}

// === impl Forward ===

impl tower_service::Service<AdmittedRequest<PoolRequest, RouteMatch>> for Forward {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, admitted: AdmittedRequest<PoolRequest, RouteMatch>) -> Self::Future {
        match prepare(admitted) {
            Ok(attempts) => Box::pin(async move { Ok(attempts.run().await) }),
            Err(response) => Box::pin(std::future::ready(Ok(*response))),
        }
    }
}

/// Turns a request into attempts to send it to an upstream, or responds to it if it must not be sent.
fn prepare(admitted: AdmittedRequest<PoolRequest, RouteMatch>) -> Result<Attempts, Box<Response<ResponseBody>>> {
    let AdmittedRequest { request, admitted } = admitted;
    let (mut parts, PoolRequest { inbound, pool, new_path }) = request.into_parts();
    let Inbound { connection, mut body, exchange, is_upgrade, flags } = inbound;
    exchange.note(|record| record.note_admitted(&admitted));
    let (user, takes_seat) = (admitted.user, admitted.seats > 0);
    if !connection.client.identify(&user) {
        connection.worker.metrics.client_refused();
        let failure = Failure::TooManyConnections;
        exchange.note(|record| record.note_refused(failure));
        let mut response = failure.response(&parts.uri, &parts.headers, &connection.worker.errors);
        response.extensions_mut().insert(NotFailed);
        return Err(Box::new(response));
    }
    if body.is_too_large() {
        return Err(Box::new(Failure::BodyTooLarge.response(&parts.uri, &parts.headers, &connection.worker.errors)));
    }
    if flags.has(HeadFlags::CONNECTION) {
        remove_named(&mut parts.headers);
    }
    let is_grpc = || flags.has(HeadFlags::TYPE) && is_grpc(&parts.headers);
    if connection.worker.rules.when_client_leaves(admitted.extra, is_grpc) == WhenClientLeaves::Cancel {
        let metered = parts.extensions.get::<Arc<LlmRequest>>().filter(|request| request.is_metered());
        exchange.set_on_leave(match metered {
            Some(request) => OnLeave::Stop(Arc::clone(request)),
            None => OnLeave::Cancel(Started::now(&user.name, parts.uri.path())),
        });
    }
    if connection.worker.config.llm.ask_for_usage {
        ask_for_usage(&mut parts, &mut body);
    }
    connection.identity.sanitize_headers(&mut parts.headers, &user);
    if let Some(path) = new_path {
        set_path(&mut parts.uri, &path);
    }
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
    let pool = connection.worker.latest_pool(pool);
    Ok(Attempts { connection, pool, exchange, parts, flags, is_upgrade, takes_seat, body })
}

/// Asks for the usage of a stream whose client has not. Only where a meter counts its tokens, which keeps the usage from the client.
#[cold]
fn ask_for_usage(parts: &mut Parts, body: &mut RequestBody) {
    let metered = parts.extensions.get::<Arc<LlmRequest>>().filter(|request| request.is_metered());
    let Some(request) = metered else { return };
    if body.is_received()
        && let Some(place) = place_to_ask(parts.uri.path(), body.received())
    {
        request.ask_for_usage();
        body.insert(place, ASKS_FOR_USAGE);
        // A compressed response could be neither counted nor filtered.
        parts.headers.remove(ACCEPT_ENCODING);
    }
}
