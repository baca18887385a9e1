//! Sends a request to an upstream, and to another one if nothing was sent to the first.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Method, Response, StatusCode, Version};

use super::fields::sanitize_response;
use super::head::{self, Received};
use crate::config::Protocol;
use crate::http1::{HeadFlags, ResponseHead, Wire};
use crate::proxy::connection::Connection;
use crate::proxy::error_response::{Failure, is_grpc};
use crate::proxy::exchange::{Exchange, OnLeave};
use crate::proxy::pool::WorkerPool;
use crate::proxy::request_body::{BodyError, RequestBody};
use crate::proxy::response_body::ResponseBody;
use crate::proxy::service_times::Started;
use crate::proxy::upstream::{
    CallError, ConnectError, GrpcStatus, Http1Call, Http2Stream, InFlight, Negotiated, Picked, Unanswered,
    UpstreamTarget,
};
use crate::timeouts::{IdleTimeout, Timeout, UploadProgress};

/// A request on its way to an upstream.
pub(super) struct Attempts {
    pub(super) connection: Rc<Connection>,
    /// The service of the request, under the settings that were in effect when it got its seat.
    pub(super) pool: Rc<WorkerPool>,
    pub(super) exchange: Rc<Exchange>,
    pub(super) parts: Parts,
    /// What sorts of fields are in the head.
    pub(super) flags: HeadFlags,
    pub(super) is_upgrade: bool,
    pub(super) takes_seat: bool,
    pub(super) body: RequestBody,
}

/// Why an upstream did not respond, and whether the request may be retried.
struct Refused {
    failure: Failure,
    /// The body, if nothing of it is lost.
    body: Option<RequestBody>,
    next: AfterFailure,
}

/// What may be tried after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterFailure {
    /// Nothing was sent, or the request may be sent twice: any other upstream may be asked.
    OtherUpstream,
    /// Nothing was sent, because a connection that was good so far takes no more requests, which happens: the same
    /// upstream, on another one.
    SameUpstream,
    /// A connection that had been used before was closed, which happens: the same upstream, on a new one, if the request
    /// may be sent twice.
    NewConnection,
    /// Nothing is sent again: the upstream may have processed the request.
    Nothing,
}

/// Watches a request whose upstream may never respond.
struct Vigil<'a> {
    picked: &'a Picked,
    timeout: Timeout,
}

/// A way to the upstream.
enum UpstreamConnection {
    Http1(Box<Wire>),
    Http2(Http2Stream),
}

/// How often a request is sent to the same upstream on another connection. Further failures are not by chance.
const SAME_UPSTREAM_MAX: u32 = 3;

/// How often a request that has waited for long looks whether its upstream is silent.
const SILENCE_LOOK: Duration = Duration::from_millis(250);

// === impl Vigil ===

impl Vigil<'_> {
    /// Whether the request has waited for long, and nothing comes back from the upstream while others respond.
    fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        while self.timeout.poll(context).is_ready() {
            if self.picked.is_silent() {
                return Poll::Ready(());
            }
            self.timeout.set(SILENCE_LOOK);
        }
        Poll::Pending
    }
}

// === impl Attempts ===

impl Attempts {
    /// The upstream's response, or an error response.
    ///
    /// Nearly all requests go over a connection that is open already, and get a response. That way is short on purpose: the
    /// memory for all other cases would be moved with every request.
    pub(super) async fn run(mut self) -> Response<ResponseBody> {
        let body = std::mem::replace(&mut self.body, RequestBody::none());
        let mut picked = self.pool.upstreams.pick();
        let outcome = match self.used(&picked) {
            None => Ok(body),
            Some(wire) => {
                let (mut call, in_flight) = self.begin(&picked, wire, body);
                match self.head(&picked, &mut call).await {
                    Ok(head) => {
                        // The memory of this request's headers is used for the next response on the connection.
                        call.give_back(std::mem::take(&mut self.parts.headers));
                        return self.response(&picked, call, head, in_flight);
                    }
                    Err(failure) => Err(Refused::of_call(failure, call, AfterFailure::NewConnection)),
                }
            }
        };
        match Box::pin(self.retry(&mut picked, outcome)).await {
            Ok(response) => response,
            Err(failure) => {
                if let Some(kind) = failure.of_upstream() {
                    picked.upstream.note_failed(kind, &self.exchange.id, &failure);
                    self.exchange.note(|record| record.note_upstream_failed(&picked.upstream, kind));
                }
                failure.response(&self.parts.uri, &self.parts.headers, &self.connection.worker.errors)
            }
        }
    }

    /// Sends a body to the upstream that was chosen, or to others after it has refused.
    async fn retry(
        &self,
        chosen: &mut Picked,
        mut outcome: Result<RequestBody, Box<Refused>>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let (mut tried, mut anew, mut is_fresh_wanted) = (Vec::new(), 0, false);
        loop {
            let refused = match outcome {
                Err(refused) => refused,
                Ok(body) => match self.send(chosen, body).await {
                    Ok(response) => return Ok(response),
                    Err(refused) => refused,
                },
            };
            let Refused { failure, body, next } = *refused;
            // The upstream was told that the client has left, and may have closed the connection for that.
            if self.exchange.has_client_left() {
                return Err(Failure::ClientGone);
            }
            if let Some(unanswered) = failure.unanswered(next) {
                chosen.note_unanswered(unanswered);
            }
            let Some(unsent) = body else { return Err(failure) };
            match next {
                AfterFailure::OtherUpstream => {
                    tried.push(chosen.index());
                    *chosen = self.pool.upstreams.pick_other(&tried).ok_or(failure)?;
                }
                AfterFailure::SameUpstream if anew < SAME_UPSTREAM_MAX => anew += 1,
                AfterFailure::NewConnection if !is_fresh_wanted && is_idempotent(&self.parts.method) => {
                    is_fresh_wanted = true;
                }
                AfterFailure::SameUpstream | AfterFailure::NewConnection | AfterFailure::Nothing => {
                    return Err(failure);
                }
            }
            self.connection.worker.metrics.request_retried();
            outcome = Ok(unsent);
        }
    }

    /// Sends to this upstream, on a new connection or one that requests of HTTP/2 share.
    async fn send(&self, picked: &Picked, body: RequestBody) -> Result<Response<ResponseBody>, Box<Refused>> {
        match self.way(picked).await {
            // The client has left while a second connection was made, after the first did not get the request.
            Ok(_) if self.exchange.has_client_left() => {
                Err(Refused::new(Failure::ClientGone, None, AfterFailure::Nothing))
            }
            Ok(UpstreamConnection::Http1(wire)) => {
                let (mut call, in_flight) = self.begin(picked, wire, body);
                match self.head(picked, &mut call).await {
                    Ok(head) => Ok(self.response(picked, call, head, in_flight)),
                    Err(failure) => Err(Refused::of_call(failure, call, AfterFailure::Nothing)),
                }
            }
            Ok(UpstreamConnection::Http2(stream)) => self.send_http2(picked, stream, body).await,
            Err(error) => {
                let failure = match error {
                    ConnectError::Unresolved(_) => Failure::Resolve,
                    ConnectError::Failed(_) => Failure::Connect,
                    ConnectError::TookTooLong => Failure::ConnectTimeout,
                };
                // Logged here, where the cause is known, although the request need not fail: another upstream may take it.
                if let Some(kind) = failure.of_upstream() {
                    picked.upstream.warn(kind, &self.exchange.id, &error);
                }
                Err(Refused::new(failure, Some(body), AfterFailure::OtherUpstream))
            }
        }
    }

    /// Whether the request goes over HTTP/2; none if the upstream has to be asked first.
    fn is_http2(&self, picked: &Picked) -> Option<bool> {
        let target = &picked.upstream.target;
        match target.protocol {
            Protocol::Http1 => Some(false),
            Protocol::Http2 => Some(true),
            Protocol::Auto if target.tls.is_none() => {
                Some(self.flags.has(HeadFlags::TYPE) && is_grpc(&self.parts.headers))
            }
            // A connection that is upgraded cannot be shared.
            Protocol::Auto if self.is_upgrade => Some(false),
            Protocol::Auto => picked.upstream.speaks_http2(),
        }
    }

    /// A connection that has been used before.
    fn used(&self, picked: &Picked) -> Option<Box<Wire>> {
        if self.is_http2(picked) == Some(false) { picked.upstream.pool.take() } else { None }
    }

    /// A new connection, or a place on one that requests of HTTP/2 share.
    async fn way(&self, picked: &Picked) -> Result<UpstreamConnection, ConnectError> {
        let upstream = &picked.upstream;
        match self.is_http2(picked) {
            Some(true) => upstream.http2().await.map(UpstreamConnection::Http2),
            Some(false) => upstream.connect_http1().await.map(UpstreamConnection::Http1),
            None => Ok(match upstream.agree().await? {
                Negotiated::Http1(stream) => UpstreamConnection::Http1(Box::new(upstream.wire(stream))),
                Negotiated::Http2(stream) => UpstreamConnection::Http2(stream),
            }),
        }
    }

    fn received(&self) -> Received<'_> {
        Received { parts: &self.parts, flags: self.flags, id: &self.exchange.id, is_upgrade: self.is_upgrade }
    }

    /// Puts the head of the request on the wire.
    fn begin(&self, picked: &Picked, mut wire: Box<Wire>, mut body: RequestBody) -> (Http1Call, InFlight) {
        body.keep_steady();
        let (target, provenance) = (&picked.upstream.target, &self.connection.provenance);
        let encoder = head::put_http1(wire.output(), self.received(), &body, target, provenance);
        (Http1Call::new(wire, self.parts.method.clone(), body, encoder), self.in_flight(picked))
    }

    /// The upstream gets the request to work on.
    fn in_flight(&self, picked: &Picked) -> InFlight {
        self.exchange.note_sent(&picked.upstream);
        let in_flight = picked.begin();
        match self.exchange.on_leave() {
            OnLeave::Wait(_) | OnLeave::Stop(_) => in_flight,
            OnLeave::Cancel(started) => in_flight.timed(&self.connection.worker.service_times, started),
        }
    }

    /// The response that begins with this head.
    fn response(
        &self,
        picked: &Picked,
        call: Http1Call,
        mut head: ResponseHead,
        in_flight: InFlight,
    ) -> Response<ResponseBody> {
        self.note_response(picked, head.status, None);
        let mut response = Response::new(ResponseBody::default());
        *response.status_mut() = head.status;
        *response.headers_mut() = std::mem::take(&mut head.headers);
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            *response.body_mut() = ResponseBody::upgraded(Box::new(call.into_wire()));
            return response;
        }
        sanitize_response(head.status, response.headers_mut(), head.flags);
        let body = call.into_body(&head, &picked.upstream, || self.stall());
        *response.body_mut() = ResponseBody::http1(body, in_flight);
        response
    }

    /// The upstream has responded.
    fn note_response(&self, picked: &Picked, status: StatusCode, grpc: Option<GrpcStatus>) {
        picked.note_response(status, grpc);
        self.exchange.note_responding(&picked.upstream, status);
    }

    /// The timeout that ends the exchange when neither side has made progress for the stall time.
    fn stall(&self) -> IdleTimeout<Exchange> {
        let worker = &self.connection.worker;
        IdleTimeout::new(&worker.timer, &self.exchange, self.exchange.timeouts.stall)
    }

    /// Sends, and waits for the head of the final response.
    async fn head(&self, picked: &Picked, call: &mut Http1Call) -> Result<ResponseHead, Failure> {
        let worker = &self.connection.worker;
        let response_after = self.exchange.timeouts.response;
        let mut timeout = worker.timer.timeout(response_after);
        let mut vigil = self.vigil(picked, call.has_no_body());
        loop {
            let mut sent = call.sent();
            let wait = |context: &mut Context<'_>| {
                if self.exchange.has_client_left() {
                    call.half_close();
                }
                if let Poll::Ready(head) = call.poll_head(context) {
                    return Poll::Ready(Ok(head));
                }
                // An upstream that receives a body need not respond yet.
                if call.sent() != sent {
                    sent = call.sent();
                    timeout.set(response_after);
                }
                if vigil.as_mut().is_some_and(|vigil| vigil.poll(context).is_ready()) {
                    return Poll::Ready(Err(Failure::Silent));
                }
                ready!(timeout.poll(context));
                if call.send_now() {
                    timeout.set(response_after);
                    return timeout.poll(context).map(|()| Err(Failure::ResponseTimeout));
                }
                Poll::Ready(Err(Failure::ResponseTimeout))
            };
            let head = match poll_fn(wait).await {
                Ok(Ok(head)) => head,
                Ok(Err(error)) => return Err(error.into()),
                Err(failure) => return Err(failure),
            };
            match head.status {
                StatusCode::SWITCHING_PROTOCOLS if self.is_upgrade => return Ok(head),
                StatusCode::SWITCHING_PROTOCOLS => return Err(Failure::MalformedResponse),
                // The gateway itself has sent this response to the client.
                StatusCode::CONTINUE => {}
                status if status.is_informational() => self.note_interim(status, head.headers),
                _ => return Ok(head),
            }
        }
    }

    /// Watches whether the request waits in vain. Only for a request that may be sent twice, and is then sent elsewhere.
    fn vigil<'a>(&self, picked: &'a Picked, has_no_body: bool) -> Option<Vigil<'a>> {
        // A request without a seat is long-running, and says nothing about the upstream.
        let may_be_sent_twice = has_no_body && self.takes_seat && !self.is_upgrade && is_idempotent(&self.parts.method);
        let patience = may_be_sent_twice.then(|| picked.patience()).flatten()?;
        Some(Vigil { picked, timeout: self.connection.worker.timer.timeout(patience) })
    }

    /// Passes an interim response on. HTTP/1.0 knows none.
    fn note_interim(&self, status: StatusCode, mut headers: HeaderMap) {
        if self.parts.version != Version::HTTP_10 {
            sanitize_response(status, &mut headers, HeadFlags::ANY);
            self.exchange.add_interim(status, headers);
        }
    }

    async fn send_http2(
        &self,
        picked: &Picked,
        stream: Http2Stream,
        mut body: RequestBody,
    ) -> Result<Response<ResponseBody>, Box<Refused>> {
        let worker = &self.connection.worker;
        let upload = UploadProgress::new(&worker.timer, self.exchange.timeouts.response);
        body.tell(&upload);
        // A body that does not end resets the stream, and nothing more is heard of it. The time of others tells how long
        // the request would have run.
        let has_no_body = body.is_none();
        let started = (!has_no_body).then(|| Started::now("", self.parts.uri.path()));
        let (target, provenance) = (&picked.upstream.target, &self.connection.provenance);
        let Some(request) = head::http2(self.received(), body, target, provenance) else {
            return Err(Refused::new(Failure::HostConflict, None, AfterFailure::Nothing));
        };
        let mut in_flight = self.in_flight(picked);
        if let (Some(started), OnLeave::Wait(_)) = (started, self.exchange.on_leave()) {
            self.exchange.set_on_leave(OnLeave::Wait(Some(started)));
            in_flight = in_flight.timed(&worker.service_times, started);
        }
        let outcome = {
            let mut call = pin!(stream.call(request));
            let mut vigil = self.vigil(picked, has_no_body);
            let wait = |context: &mut Context<'_>| match call.as_mut().poll(context) {
                Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
                Poll::Pending if vigil.as_mut().is_some_and(|vigil| vigil.poll(context).is_ready()) => {
                    Poll::Ready(Err(Failure::Silent))
                }
                Poll::Pending => upload.poll_overdue(context).map(|()| Err(Failure::ResponseTimeout)),
            };
            poll_fn(wait).await
        };
        match outcome {
            Err(Failure::Silent) => {
                Err(Refused::new(Failure::Silent, Some(RequestBody::none()), AfterFailure::OtherUpstream))
            }
            Err(failure) => Err(Refused::new(failure, None, AfterFailure::Nothing)),
            Ok(Err(_)) if upload.error().is_some() => {
                // The stream has been reset, because of the client. That is noticed elsewhere (`Exchange::failure`), and the
                // request keeps its seats for as long as it would have run.
                self.exchange.note_cancelled();
                std::future::pending().await
            }
            Ok(Err(unsent)) => Err(Refused::of_stream(&stream, target, unsent.map(http::Request::into_body))),
            Ok(Ok(response)) => {
                upload.response_began();
                let (mut parts, body) = response.into_parts();
                self.note_response(picked, parts.status, GrpcStatus::of(&parts.headers));
                sanitize_response(parts.status, &mut parts.headers, HeadFlags::ANY);
                Ok(Response::from_parts(parts, ResponseBody::http2(body, self.stall(), in_flight.on(stream))))
            }
        }
    }
}

// === impl Refused ===

impl Refused {
    #[expect(clippy::unnecessary_box_returns, reason = "it is rare, and would make every response large")]
    fn new(failure: Failure, body: Option<RequestBody>, next: AfterFailure) -> Box<Self> {
        Box::new(Self { failure, body, next })
    }

    /// Nothing is known after a connection has been closed in the middle of a request, unless it was an old one.
    #[expect(clippy::unnecessary_box_returns, reason = "it is rare, and would make every response large")]
    fn of_call(failure: Failure, call: Http1Call, closed: AfterFailure) -> Box<Self> {
        let next = match failure {
            Failure::Closed => closed,
            Failure::Silent => AfterFailure::OtherUpstream,
            _ => AfterFailure::Nothing,
        };
        Self::new(failure, call.into_unsent_body(), next)
    }

    /// Why an HTTP/2 stream got no response.
    #[expect(clippy::unnecessary_box_returns, reason = "it is rare, and would make every response large")]
    fn of_stream(stream: &Http2Stream, target: &UpstreamTarget, unsent: Option<RequestBody>) -> Box<Self> {
        if !stream.is_confirmed() && target.is_http2_a_guess() {
            return Self::new(Failure::NotHttp2, None, AfterFailure::Nothing);
        }
        let next = match &unsent {
            Some(_) if stream.is_confirmed() => AfterFailure::SameUpstream,
            Some(_) => AfterFailure::OtherUpstream,
            None => AfterFailure::Nothing,
        };
        Self::new(Failure::Closed, unsent, next)
    }
}

/// Whether doing it twice does no more than doing it once (RFC 9110, 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    method.is_safe() || matches!(*method, Method::PUT | Method::DELETE)
}

// === impl Failure ===

impl Failure {
    /// How the upstream failed, if it is to blame. One that closes a connection that was idle is not, nor one that was thought to
    /// speak HTTP/2 and never said so: whoever sends a request can make us think that.
    fn unanswered(self, next: AfterFailure) -> Option<Unanswered> {
        match self {
            Self::Closed if matches!(next, AfterFailure::SameUpstream | AfterFailure::NewConnection) => None,
            Self::Resolve | Self::Connect | Self::ConnectTimeout | Self::Closed => Some(Unanswered::Connection),
            Self::ResponseTimeout | Self::Silent | Self::MalformedResponse => Some(Unanswered::Response),
            _ => None,
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Closed => Self::Closed,
            CallError::Malformed => Self::MalformedResponse,
        }
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Gone => Self::ClientGone,
            BodyError::Stalled => Self::BodyStalled,
            BodyError::TooSlow => Self::BodyTooSlow,
            BodyError::NoBuffer => Self::NoBuffer,
            BodyError::TooLarge => Self::BodyTooLarge,
            BodyError::Malformed => Self::MalformedBody,
        }
    }
}
