//! Sending a request to an upstream, and to another one if nothing was sent to the first.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::fields::clean_answer;
use super::head;
use crate::answer_body::AnswerBody;
use crate::answers::{Failure, is_grpc};
use crate::client_body::{BodyError, ClientBody};
use crate::config::Protocol;
use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::h1::{ResponseHead, Wire};
use crate::ticks::Elapsed;
use crate::upstream::{Agreed, CallError, ConnectError, Consequence, Http1Call, Picked, call_http2};

/// A request on its way to an upstream.
pub(super) struct Attempts {
    pub(super) connection: Rc<Connection>,
    pub(super) exchange: Rc<Exchange>,
    pub(super) parts: Parts,
    pub(super) is_upgrade: bool,
    pub(super) body: ClientBody,
}

/// Why an upstream did not answer, and whether somebody else may be asked.
struct Refused {
    failure: Failure,
    /// The body, if nothing of it is lost.
    body: Option<ClientBody>,
    next: Next,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing was sent: any other upstream may be asked.
    Other,
    /// A connection that had been used before was closed, which happens: the same upstream, on a new one.
    Fresh,
    /// Nobody can know what the upstream has done.
    Nothing,
}

/// A way to the upstream.
enum Way {
    Http1 { wire: Box<Wire>, is_reused: bool },
    Http2(hyper::client::conn::http2::SendRequest<ClientBody>),
}

// === impl Attempts ===

impl Attempts {
    /// The upstream's answer, or one that says why there is none.
    pub(super) async fn answer(mut self) -> Response<AnswerBody> {
        let body = std::mem::replace(&mut self.body, ClientBody::none());
        match self.run(body).await {
            Ok(response) => response,
            Err(failure) => {
                tracing::debug!(%failure, "a request was not answered by an upstream");
                if let Some(failure) = failure.of_upstream() {
                    self.connection.worker.metrics.upstream_failed(failure);
                }
                failure.answer(&self.parts.headers)
            }
        }
    }

    async fn run(&self, mut body: ClientBody) -> Result<Response<AnswerBody>, Failure> {
        let upstreams = &self.connection.worker.upstreams;
        let (mut tried, mut last, mut is_fresh_wanted) = (Vec::new(), Failure::NoUpstream, false);
        let mut picked = upstreams.pick(&tried);
        while let Some(chosen) = picked {
            let refused = match self.send(&chosen, body, is_fresh_wanted).await {
                Ok(response) => {
                    chosen.note_success();
                    return Ok(response);
                }
                Err(refused) => *refused,
            };
            last = refused.failure;
            if refused.is_failure_of_upstream() && chosen.note_failure() == Consequence::Ejected {
                self.connection.worker.metrics.upstream_ejected();
            }
            let Some(unsent) = refused.body else { break };
            body = unsent;
            self.connection.worker.metrics.request_retried();
            picked = match refused.next {
                Next::Other => {
                    tried.push(chosen.index());
                    upstreams.pick(&tried)
                }
                Next::Fresh if !is_fresh_wanted && is_idempotent(&self.parts.method) => {
                    is_fresh_wanted = true;
                    Some(chosen)
                }
                Next::Fresh | Next::Nothing => break,
            };
        }
        Err(last)
    }

    /// Sends to this upstream. What seldom happens is kept apart: the room for it would be moved about with every request.
    async fn send(
        &self,
        picked: &Picked,
        body: ClientBody,
        is_fresh: bool,
    ) -> Result<Response<AnswerBody>, Box<Refused>> {
        let way = match self.used(picked, is_fresh) {
            Some(wire) => Ok(Way::Http1 { wire, is_reused: true }),
            None => Box::pin(self.way(picked)).await,
        };
        match way {
            Ok(Way::Http1 { wire, is_reused }) => self.send_http1(picked, wire, body, is_reused).await,
            Ok(Way::Http2(sender)) => Box::pin(self.send_http2(picked, sender, body)).await,
            Err(error) => {
                let upstream = &picked.upstream.known.authority;
                let failure = match error {
                    ConnectError::Failed(error) => {
                        tracing::warn!(upstream, %error, "connecting to the upstream failed");
                        Failure::Connect
                    }
                    ConnectError::TookTooLong => {
                        tracing::warn!(upstream, "connecting to the upstream took too long");
                        Failure::ConnectTimeout
                    }
                };
                Err(Refused::new(failure, Some(body), Next::Other))
            }
        }
    }

    /// Whether the request goes over HTTP/2; none if the upstream has to be asked first.
    fn is_http2(&self, picked: &Picked) -> Option<bool> {
        let known = &picked.upstream.known;
        match known.protocol {
            Protocol::Http1 => Some(false),
            Protocol::Http2 => Some(true),
            Protocol::Auto if known.tls.is_none() => Some(is_grpc(&self.parts.headers)),
            // What is spoken after an upgrade takes a connection of its own.
            Protocol::Auto if self.is_upgrade => Some(false),
            Protocol::Auto => picked.upstream.speaks_http2(),
        }
    }

    /// A connection that has been used before.
    fn used(&self, picked: &Picked, is_fresh: bool) -> Option<Box<Wire>> {
        if is_fresh || self.is_http2(picked) != Some(false) {
            return None;
        }
        picked.upstream.pool.take()
    }

    /// A new connection, or the one that all requests of HTTP/2 share.
    async fn way(&self, picked: &Picked) -> Result<Way, ConnectError> {
        let upstream = &picked.upstream;
        match self.is_http2(picked) {
            Some(true) => upstream.http2().await.map(Way::Http2),
            Some(false) => Ok(Way::Http1 { wire: upstream.connect_http1().await?, is_reused: false }),
            None => Ok(match upstream.agree().await? {
                Agreed::Http1(stream) => Way::Http1 { wire: Box::new(Wire::new(stream)), is_reused: false },
                Agreed::Http2(sender) => Way::Http2(sender),
            }),
        }
    }

    async fn send_http1(
        &self,
        picked: &Picked,
        mut wire: Box<Wire>,
        body: ClientBody,
        is_reused: bool,
    ) -> Result<Response<AnswerBody>, Box<Refused>> {
        let (known, provenance) = (&picked.upstream.known, &self.connection.provenance);
        let encoder = head::put_http1(&mut wire.output, &self.parts, &body, known, provenance, self.is_upgrade);
        let in_flight = picked.begin();
        let mut call = Http1Call::new(wire, self.parts.method.clone(), body, encoder);
        let mut head = match self.head(&mut call).await {
            Ok(head) => head,
            Err(failure) => {
                let next = if is_reused && failure == Failure::Closed { Next::Fresh } else { Next::Nothing };
                return Err(Refused::new(failure, call.into_unanswered(), next));
            }
        };
        let mut response = Response::new(AnswerBody::default());
        *response.status_mut() = head.status;
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            *response.headers_mut() = head.headers;
            self.exchange.set_upgraded(call.into_wire());
            return Ok(response);
        }
        *response.headers_mut() = std::mem::take(&mut head.headers);
        clean_answer(head.status, response.headers_mut());
        let worker = &self.connection.worker;
        let answer = call.into_answer(&head, &picked.upstream, &worker.ticks, worker.config.timeouts.stall);
        if !answer.is_ended() {
            *response.body_mut() = AnswerBody::http1(Box::new(answer), in_flight);
        }
        Ok(response)
    }

    /// Sends, and waits for the head of the final answer.
    async fn head(&self, call: &mut Http1Call) -> Result<ResponseHead, Failure> {
        let worker = &self.connection.worker;
        let answer_after = worker.config.timeouts.answer;
        let mut alarm = worker.ticks.alarm(answer_after);
        loop {
            let mut sent = call.sent();
            let wait = |context: &mut Context<'_>| match call.poll_head(context) {
                Poll::Ready(head) => Poll::Ready(Ok(head)),
                Poll::Pending => {
                    // An upload that moves is no upstream that does not answer.
                    if call.sent() != sent {
                        sent = call.sent();
                        alarm.set(answer_after);
                    }
                    alarm.poll(context).map(|()| Err(Elapsed))
                }
            };
            let head = match poll_fn(wait).await {
                Ok(Ok(head)) => head,
                Ok(Err(error)) => return Err(error.into()),
                Err(Elapsed) => return Err(Failure::AnswerTimeout),
            };
            match head.status {
                StatusCode::SWITCHING_PROTOCOLS if self.is_upgrade => return Ok(head),
                StatusCode::SWITCHING_PROTOCOLS => return Err(Failure::MalformedAnswer),
                // The gateway has answered that itself.
                StatusCode::CONTINUE => {}
                status if status.is_informational() => self.exchange.add_interim(status, head.headers),
                _ => return Ok(head),
            }
        }
    }

    async fn send_http2(
        &self,
        picked: &Picked,
        sender: hyper::client::conn::http2::SendRequest<ClientBody>,
        body: ClientBody,
    ) -> Result<Response<AnswerBody>, Box<Refused>> {
        let worker = &self.connection.worker;
        let Some(request) = head::http2(&self.parts, body, &picked.upstream.known, &self.connection.provenance) else {
            return Err(Refused::new(Failure::HostConflict, None, Next::Nothing));
        };
        let in_flight = picked.begin();
        let (timeouts, ticks) = (&worker.config.timeouts, &worker.ticks);
        match ticks.limit(timeouts.answer, call_http2(sender, request)).await {
            Err(Elapsed) => Err(Refused::new(Failure::AnswerTimeout, None, Next::Nothing)),
            Ok(Err((error, unsent))) => {
                let next = if unsent.is_some() { Next::Fresh } else { Next::Nothing };
                Err(Refused::new(error.into(), unsent.map(http::Request::into_body), next))
            }
            Ok(Ok(response)) => {
                let (mut parts, body) = response.into_parts();
                clean_answer(parts.status, &mut parts.headers);
                let stall = ticks.alarm(timeouts.stall);
                Ok(Response::from_parts(parts, AnswerBody::http2(body, stall, timeouts.stall, in_flight)))
            }
        }
    }
}

// === impl Refused ===

impl Refused {
    #[expect(clippy::unnecessary_box_returns, reason = "it is rare, and would make every answer large")]
    fn new(failure: Failure, body: Option<ClientBody>, next: Next) -> Box<Self> {
        Box::new(Self { failure, body, next })
    }

    /// Whether the upstream is to blame. One that closes a connection that was idle is not.
    fn is_failure_of_upstream(&self) -> bool {
        match self.failure {
            Failure::Connect | Failure::ConnectTimeout => true,
            Failure::Closed => self.next != Next::Fresh,
            _ => false,
        }
    }
}

/// Whether doing it twice does no more than doing it once (RFC 9110, 9.2.2).
fn is_idempotent(method: &Method) -> bool {
    method.is_safe() || matches!(*method, Method::PUT | Method::DELETE)
}

// === impl Failure ===

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Closed => Self::Closed,
            CallError::Malformed => Self::MalformedAnswer,
            CallError::Body(BodyError::Gone) => Self::ClientGone,
            CallError::Body(BodyError::Stalled) => Self::BodyStalled,
            CallError::Body(BodyError::TooLarge) => Self::BodyTooLarge,
            CallError::Body(BodyError::Malformed) => Self::MalformedBody,
        }
    }
}
