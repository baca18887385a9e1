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
pub(super) struct Attempts<'a> {
    pub(super) connection: &'a Rc<Connection>,
    pub(super) exchange: &'a Exchange,
    pub(super) parts: &'a Parts,
    pub(super) is_upgrade: bool,
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

impl Attempts<'_> {
    pub(super) async fn run(&self, mut body: ClientBody) -> Result<Response<AnswerBody>, Failure> {
        let upstreams = &self.connection.worker.upstreams;
        let (mut tried, mut last, mut is_fresh_wanted) = (Vec::new(), Failure::NoUpstream, false);
        let mut picked = upstreams.pick(&tried);
        while let Some(chosen) = picked {
            let refused = match self.send(&chosen, body, is_fresh_wanted).await {
                Ok(response) => {
                    chosen.note_success();
                    return Ok(response);
                }
                Err(refused) => refused,
            };
            last = refused.failure;
            let is_its_fault = matches!(last, Failure::Connect | Failure::ConnectTimeout)
                || last == Failure::Closed && refused.next != Next::Fresh;
            if is_its_fault && chosen.note_failure() == Consequence::Ejected {
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

    async fn send(&self, picked: &Picked, body: ClientBody, is_fresh: bool) -> Result<Response<AnswerBody>, Refused> {
        match self.way(picked, is_fresh).await {
            Ok(Way::Http1 { wire, is_reused }) => self.send_http1(picked, wire, body, is_reused).await,
            Ok(Way::Http2(sender)) => self.send_http2(picked, sender, body).await,
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
                Err(Refused { failure, body: Some(body), next: Next::Other })
            }
        }
    }

    /// A connection for the request: of HTTP/2 where the upstream speaks that, and for gRPC.
    async fn way(&self, picked: &Picked, is_fresh: bool) -> Result<Way, ConnectError> {
        let upstream = &picked.upstream;
        let known = &upstream.known;
        let is_http2 = match known.protocol {
            Protocol::Http1 => false,
            Protocol::Http2 => true,
            Protocol::Auto if known.tls.is_none() => is_grpc(&self.parts.headers),
            // What is spoken after an upgrade takes a connection of its own.
            Protocol::Auto if self.is_upgrade => false,
            Protocol::Auto => match upstream.speaks_http2() {
                Some(speaks) => speaks,
                None => {
                    return Ok(match upstream.agree().await? {
                        Agreed::Http1(stream) => Way::Http1 { wire: Box::new(Wire::new(stream)), is_reused: false },
                        Agreed::Http2(sender) => Way::Http2(sender),
                    });
                }
            },
        };
        if is_http2 {
            return upstream.http2().await.map(Way::Http2);
        }
        if !is_fresh && let Some(wire) = upstream.pool.take() {
            return Ok(Way::Http1 { wire, is_reused: true });
        }
        Ok(Way::Http1 { wire: upstream.connect_http1().await?, is_reused: false })
    }

    async fn send_http1(
        &self,
        picked: &Picked,
        mut wire: Box<Wire>,
        body: ClientBody,
        is_reused: bool,
    ) -> Result<Response<AnswerBody>, Refused> {
        let (known, provenance) = (&picked.upstream.known, &self.connection.provenance);
        let encoder = head::put_http1(&mut wire.output, self.parts, &body, known, provenance, self.is_upgrade);
        let in_flight = picked.begin();
        let mut call = Http1Call::new(wire, self.parts.method.clone(), body, encoder);
        let mut head = match self.head(&mut call).await {
            Ok(head) => head,
            Err(failure) => {
                let next = if is_reused && failure == Failure::Closed { Next::Fresh } else { Next::Nothing };
                return Err(Refused { failure, body: call.into_unanswered(), next });
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
    ) -> Result<Response<AnswerBody>, Refused> {
        let worker = &self.connection.worker;
        let refused = |failure, body, next| Refused { failure, body, next };
        let Some(request) = head::http2(self.parts, body, &picked.upstream.known, &self.connection.provenance) else {
            return Err(refused(Failure::HostConflict, None, Next::Nothing));
        };
        let in_flight = picked.begin();
        let (timeouts, ticks) = (&worker.config.timeouts, &worker.ticks);
        match ticks.limit(timeouts.answer, call_http2(sender, request)).await {
            Err(Elapsed) => Err(refused(Failure::AnswerTimeout, None, Next::Nothing)),
            Ok(Err((error, unsent))) => {
                let next = if unsent.is_some() { Next::Fresh } else { Next::Nothing };
                Err(refused(error.into(), unsent.map(http::Request::into_body), next))
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
