//! Serves a client's connection that speaks HTTP/1.1.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::header::TE;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};

use super::answer_head::{self, Asked};
use super::any_body::AnyBody;
use super::first_bytes::FIRST_REQUEST_MAX;
use super::linger::linger;
use super::relay::{Relay, RelayError, is_gone};
use super::{rejected, serve_http2, upgrade};
use crate::answers::{self, Failure};
use crate::client_body::{ClientBody, ClientWire};
use crate::connection::Connection;
use crate::exchange::{Exchange, Inbound};
use crate::forward::Flow;
use crate::h1::{HeadFault, HeadLimits, Noted, RequestHead, Wire, has_token};
use crate::stream::{Rewound, Stream};
use crate::ticks::Alarm;
use crate::worker::Worker;

/// A connection that is served.
struct Serving {
    connection: Rc<Connection>,
    client: Rc<RefCell<ClientWire>>,
    exchange: Rc<Exchange>,
    /// Made for the first request.
    flow: Option<Flow>,
}

/// What comes next on a connection.
#[expect(clippy::large_enum_variant, reason = "there is one for a moment only, and mostly it is a request")]
enum Next {
    Request(RequestHead),
    /// The client speaks HTTP/2 instead.
    Http2,
    Refused(HeadFault),
    TimedOut,
    Closed,
}

/// What becomes of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    GoesOn,
    /// The client may still be sending: it is let finish, within limits.
    Lingers,
    Closes,
    Upgrades,
}

/// A connection without a request gives its buffers back after this time. Soon, because the allocator gives memory back to the
/// system only while there is something to do.
const RELAX_AFTER: Duration = Duration::from_millis(250);
/// How a connection of HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection to its end.
pub(crate) async fn serve(connection: Rc<Connection>, stream: Stream) {
    let client = Rc::new(RefCell::new(ClientWire::new(Wire::new(stream))));
    let mut serving = Serving { connection, client, exchange: Rc::default(), flow: None };
    let mut is_first = true;
    loop {
        let after = match serving.next(is_first).await {
            Next::Request(head) => Box::pin(serving.respond(head)).await,
            Next::Http2 => return Box::pin(serving.into_http2()).await,
            Next::Refused(fault) => Box::pin(serving.refuse(fault.status, fault.reason)).await,
            Next::TimedOut => {
                let reason = Failure::HeadTimeout.to_string();
                Box::pin(serving.refuse(StatusCode::REQUEST_TIMEOUT, &reason)).await
            }
            Next::Closed => return,
        };
        is_first = false;
        match after {
            After::GoesOn => {}
            After::Closes => return,
            After::Lingers => {
                let ticks = Rc::clone(&serving.connection.worker.ticks);
                if let Some(mut wire) = serving.into_wire() {
                    Box::pin(linger(&mut wire, &ticks)).await;
                }
                return;
            }
            After::Upgrades => return Box::pin(serving.upgrade()).await,
        }
    }
}

// === impl Serving ===

impl Serving {
    /// Waits for the next request.
    async fn next(&self, is_first: bool) -> Next {
        let worker = &self.connection.worker;
        let timeouts = &worker.config.timeouts;
        let limits = HeadLimits { bytes: worker.config.limits.head_bytes, fields: worker.config.limits.headers };
        // A client that has not said anything yet is not one that may come back with another request.
        let idle_after = if is_first { worker.first_byte_after() } else { worker.idle_after() };
        // The memory of the buffers is kept for a client that goes on at once.
        let mut alarm = self.exchange.alarm(&worker.ticks);
        alarm.set(idle_after.min(RELAX_AFTER));
        let mut is_relaxed = idle_after <= RELAX_AFTER;
        let (mut has_begun, mut is_hurried, mut looked_at) = (false, false, 0);
        poll_fn(|context| {
            let wire = &mut self.client.borrow_mut().wire;
            loop {
                if !wire.input.is_empty() && !has_begun {
                    has_begun = true;
                    alarm.set(timeouts.head);
                }
                if is_first
                    && !wire.input.is_empty()
                    && PREFACE.starts_with(&wire.input[..PREFACE.len().min(wire.input.len())])
                {
                    if wire.input.len() >= PREFACE.len() {
                        return Poll::Ready(Next::Http2);
                    }
                } else if wire.input[looked_at..].contains(&b'\n') || wire.input.len() >= limits.bytes {
                    match RequestHead::take(&mut wire.input, &mut wire.heads, limits) {
                        Ok(Some(head)) => return Poll::Ready(Next::Request(head)),
                        Ok(None) => looked_at = wire.input.len(),
                        Err(fault) => return Poll::Ready(Next::Refused(fault)),
                    }
                }
                if !has_begun && worker.is_draining() {
                    if !is_first {
                        return Poll::Ready(Next::Closed);
                    }
                    if !is_hurried {
                        is_hurried = true;
                        alarm.set(FIRST_REQUEST_MAX);
                    }
                }
                match wire.poll_fill(context) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Next::Closed),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending if alarm.poll(context).is_pending() => return Poll::Pending,
                    Poll::Pending if has_begun => return Poll::Ready(Next::TimedOut),
                    Poll::Pending if is_relaxed || is_hurried => return Poll::Ready(Next::Closed),
                    Poll::Pending => {
                        wire.relax();
                        is_relaxed = true;
                        alarm.set(idle_after.saturating_sub(RELAX_AFTER));
                    }
                }
            }
        })
        .await
    }

    /// Answers a request.
    async fn respond(&mut self, head: RequestHead) -> After {
        let worker = Rc::clone(&self.connection.worker);
        let _running = worker.requests.begin();
        let mut asked = Asked { method: head.method.clone(), version: head.version, is_kept_alive: head.is_kept_alive };
        let sends_trailers = head.noted.has(Noted::TE) && has_token(&head.headers, &TE, "trailers");
        let target = head.uri.clone();
        let (request, id) = self.request(head);
        let mut total = worker.ticks.alarm(worker.config.timeouts.total);
        let request = limit(request, &mut total, &worker);
        let response = if asked.method == Method::CONNECT {
            // Its body is dropped: nobody will read it.
            let (parts, _) = request.into_parts();
            Failure::Connection.answer(&parts.headers).map(AnyBody::own)
        } else {
            let flow = self.flow.get_or_insert_with(|| Flow::new(&self.connection));
            let mut future = pin!(flow.call(request));
            let wait = poll_fn(|context| {
                if let Poll::Ready(Ok(response)) = future.as_mut().poll(context) {
                    return Poll::Ready(Ok(response));
                }
                if poll_client(&self.client, &self.exchange, context) {
                    return Poll::Ready(Err(RelayError::Client));
                }
                total.poll(context).map(|()| Err(RelayError::Time))
            });
            match wait.await {
                Ok(response) => {
                    rejected::note(&worker, &response, &asked.method, &target, &self.exchange);
                    response.map(AnyBody::passed)
                }
                Err(RelayError::Time) => {
                    total.set(worker.config.timeouts.stall);
                    Failure::TotalTimeout.answer(&HeaderMap::new()).map(AnyBody::own)
                }
                Err(_) => return After::Closes,
            }
        };
        self.answer(response, &id, &mut asked, &mut total, sends_trailers).await
    }

    async fn answer(
        &mut self,
        response: Response<AnyBody>,
        id: &HeaderValue,
        asked: &mut Asked,
        total: &mut Alarm,
        sends_trailers: bool,
    ) -> After {
        let worker = &self.connection.worker;
        worker.metrics.request_ended(response.status());
        let (mut parts, body) = response.into_parts();
        // A body that nobody reads stays in the way of the next request.
        let is_unread = || !self.client.borrow().decoder.is_done();
        if worker.is_draining() || is_unread() && Rc::strong_count(&self.client) == 1 {
            asked.is_kept_alive = false;
        }
        let encoder = {
            let client = &mut *self.client.borrow_mut();
            // It would land in the middle of the answer.
            client.owes_continue = false;
            let wire = &mut client.wire;
            for (status, headers) in self.exchange.take_interim() {
                answer_head::put_interim(&mut wire.output, status, &headers);
            }
            let encoder = answer_head::put(&mut wire.output, &parts, id, &body, asked, || worker.ticks.date());
            // The next request is kept in what this answer was kept in.
            wire.heads.give_back(std::mem::take(&mut parts.headers));
            encoder
        };
        let mut body = pin!(body);
        let mut relay = Relay {
            client: &self.client,
            exchange: &self.exchange,
            ticks: &worker.ticks,
            stall_after: worker.config.timeouts.stall,
            total,
            sends_trailers,
        };
        match relay.run(body.as_mut(), encoder).await {
            Err(_) => After::Closes,
            Ok(()) if parts.status == StatusCode::SWITCHING_PROTOCOLS => After::Upgrades,
            Ok(()) if is_unread() => After::Lingers,
            Ok(()) if !asked.is_kept_alive => After::Lingers,
            Ok(()) => After::GoesOn,
        }
    }

    /// The request with this head, and its id.
    fn request(&self, head: RequestHead) -> (Request<Inbound>, HeaderValue) {
        let worker = &self.connection.worker;
        {
            let mut client = self.client.borrow_mut();
            client.decoder = head.body;
            client.owes_continue = head.expects_continue;
        }
        let body = ClientBody::http1(&self.client, worker.config.timeouts.stall, worker.config.limits.body_bytes);
        // What comes after a body could not be told from it, and HTTP/2 has a way of its own to begin.
        let is_upgrade = head.is_upgrade && body.is_none() && !has_token(&head.headers, &http::header::UPGRADE, "h2c");
        let id = worker.request_ids.assign(&head.headers);
        let exchange = Rc::clone(&self.exchange);
        let inbound = Inbound { body, exchange, is_upgrade, noted: head.noted, id: id.clone() };
        let mut request = Request::new(inbound);
        *request.method_mut() = head.method;
        *request.uri_mut() = head.uri;
        *request.version_mut() = head.version;
        *request.headers_mut() = head.headers;
        (request, id)
    }

    /// Answers a head that is none.
    async fn refuse(&mut self, status: StatusCode, reason: &str) -> After {
        let worker = Rc::clone(&self.connection.worker);
        let id = worker.request_ids.assign(&HeaderMap::new());
        let response = answers::answer(status, reason, &HeaderMap::new()).map(AnyBody::own);
        let mut asked = Asked { method: Method::GET, version: http::Version::HTTP_11, is_kept_alive: false };
        let mut total = worker.ticks.alarm(worker.config.timeouts.stall);
        self.answer(response, &id, &mut asked, &mut total, false).await
    }

    /// The connection, if nothing else uses it any more.
    fn into_wire(self) -> Option<Wire> {
        let Self { client, flow, .. } = self;
        drop(flow);
        Rc::into_inner(client).map(|client| client.into_inner().wire)
    }

    async fn into_http2(self) {
        let connection = Rc::clone(&self.connection);
        if let Some(wire) = self.into_wire() {
            serve_http2(connection, Rewound::new(wire.input.freeze(), wire.stream)).await;
        }
    }

    /// Lets client and upstream speak what they have agreed on.
    async fn upgrade(self) {
        let worker = Rc::clone(&self.connection.worker);
        let upstream = self.exchange.take_upgraded();
        if let (Some(client), Some(upstream)) = (self.into_wire(), upstream) {
            let _running = worker.requests.begin();
            upgrade::run(client, *upstream, &worker).await;
        }
    }
}

/// Sets the time for a whole request, if there is one, which depends on what is asked for.
fn limit(request: Request<Inbound>, total: &mut Alarm, worker: &Worker) -> Request<Inbound> {
    if worker.config.timeouts.total.is_zero() {
        return request;
    }
    let (parts, inbound) = request.into_parts();
    total.set(worker.total_after(&parts));
    Request::from_parts(parts, inbound)
}

/// Passes interim answers on. Whether the client has gone.
fn poll_client(client: &RefCell<ClientWire>, exchange: &Exchange, context: &mut Context<'_>) -> bool {
    let mut client = client.borrow_mut();
    for (status, headers) in exchange.take_interim() {
        answer_head::put_interim(&mut client.wire.output, status, &headers);
    }
    if client.wire.has_output() && matches!(client.wire.poll_flush(context), Poll::Ready(Err(_))) {
        return true;
    }
    is_gone(&mut client, context)
}
