//! Serves a client's connection that speaks HTTP/1.1.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use evenkeel::request::LongRunning;
use http::header::TE;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};

use super::buffered_body::BufferedBody;
use super::first_bytes::NEXT_REQUEST_MAX;
use super::linger::linger;
use super::pass_on::{WaitingClient, pass_on};
use super::relay::Relay;
use super::response_head::{self, ResponseContext};
use super::{disconnect, serve_http2, upgrade};
use crate::config::RouteTimeouts;
use crate::http1::{Decoder, HeadFault, HeadFlags, HeadLimits, RequestHead, Wire, has_token};
use crate::net::{Rewound, Stream};
use crate::proxy::arrival::Arrival;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::{Failure, Form};
use crate::proxy::exchange::{Exchange, ExchangeTimeouts, Inbound};
use crate::proxy::record::{DEBUG, RequestRecord};
use crate::proxy::request_body::{ClientWire, RequestBody};
use crate::proxy::response_body::ResponseBody;
use crate::proxy::worker::Worker;
use crate::timeouts::{MinimumRate, Timeout};

/// A connection that is served.
struct Serving {
    connection: Rc<Connection>,
    client: Rc<RefCell<ClientWire>>,
}

/// A response that is being sent.
type Responding<'a> = Pin<Box<dyn Future<Output = After> + 'a>>;

/// The next event on a connection.
#[expect(clippy::large_enum_variant, reason = "there is one for a moment only, and mostly it is a request")]
enum NextHead {
    Request(RequestHead),
    /// The client speaks HTTP/2 instead.
    Http2,
    Refused(HeadFault),
    /// The head takes too long, or there is no room for it and it is among the slowest to arrive.
    Failed(Failure),
    Closed,
}

/// How a connection goes on after a response.
#[derive(Debug)]
enum After {
    GoesOn,
    /// The client may still be sending: it is let finish, within limits.
    Lingers,
    Closes,
    /// The client speaks HTTP/2.
    Http2,
    /// Client and upstream speak another protocol.
    Upgrades(Box<Upgrade>),
}

/// A connection whose two sides speak another protocol from now on.
#[derive(Debug)]
struct Upgrade {
    upstream: Box<Wire>,
    /// The request's place among the long-running ones.
    long_running: Option<LongRunning>,
    /// How long either side may not read.
    stall: Duration,
}

/// A client that waits for the response to a request.
struct WaitingHttp1Client<'a> {
    client: &'a RefCell<ClientWire>,
    exchange: &'a Exchange,
    worker: &'a Worker,
    total: &'a mut Timeout,
}

/// How a request is framed, and what kinds of fields its head has.
#[derive(Clone, Copy)]
struct Framing {
    body: Decoder,
    expects_continue: bool,
    is_upgrade: bool,
    flags: HeadFlags,
}

/// How a connection of HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves a connection to its end, and keeps `counted` as long.
///
/// Most connections are idle most of the time, so the future is small: what a request needs is allocated when it arrives.
pub(crate) fn serve<C>(connection: Rc<Connection>, stream: Stream, counted: C) -> impl Future<Output = ()> + use<C> {
    let wire = Wire::new(stream, &connection.worker.buffer_pool);
    let mut serving = Serving { connection, client: Rc::new(RefCell::new(ClientWire::new(wire))) };
    async move {
        let _counted = &counted;
        let mut is_first = true;
        loop {
            // No local variable holds the request while it is served: it would make every idle connection larger.
            let next = serving.next(is_first).await;
            let after = match serving.begin(next) {
                Ok(response) => response.await,
                Err(after) => after,
            };
            is_first = false;
            match after {
                After::GoesOn => {}
                After::Closes => return serving.client.borrow_mut().end(),
                After::Http2 => return Box::pin(serving.into_http2()).await,
                After::Lingers => return Box::pin(serving.linger()).await,
                After::Upgrades(upgrade) => return Box::pin(serving.upgrade(upgrade)).await,
            }
        }
    }
}

// === impl Serving ===

impl Serving {
    /// Begins the response to a request, or to a failure that gets one.
    fn begin(&mut self, next: NextHead) -> Result<Responding<'_>, After> {
        match next {
            NextHead::Request(head) => Ok(Box::pin(self.respond(head))),
            NextHead::Http2 => Err(After::Http2),
            NextHead::Refused(fault) => {
                let response = self.connection.worker.errors.response(fault.status, fault.reason);
                Ok(Box::pin(self.refuse(response)))
            }
            NextHead::Failed(failure) => {
                let response = failure.response_in(Form::UNKNOWN, &self.connection.worker.errors);
                Ok(Box::pin(self.refuse(response)))
            }
            NextHead::Closed => Err(After::Closes),
        }
    }

    /// Waits for the next request.
    async fn next(&self, is_first: bool) -> NextHead {
        let worker = &self.connection.worker;
        let timeouts = &worker.config.timeouts;
        let limits = HeadLimits { bytes: worker.config.limits.head_bytes, fields: worker.config.limits.headers };
        // A client that has not sent anything yet gets less time than one that may send another request.
        let idle_after = if is_first { worker.first_byte_after() } else { worker.idle_after() };
        let mut timeout = worker.timer.timeout(idle_after);
        let (mut has_begun, mut is_hurried, mut looked_at) = (false, false, 0);
        // Made for heads that do not arrive at once.
        let mut buffer = None;
        poll_fn(|context| {
            let wire = &mut self.client.borrow_mut().wire;
            loop {
                if !wire.input.is_empty() && !has_begun {
                    has_begun = true;
                    timeout.set(timeouts.head);
                }
                if is_first
                    && !wire.input.is_empty()
                    && PREFACE.starts_with(&wire.input[..PREFACE.len().min(wire.input.len())])
                {
                    if wire.input.len() >= PREFACE.len() {
                        return Poll::Ready(NextHead::Http2);
                    }
                } else if wire.input[looked_at..].contains(&b'\n') || wire.input.len() >= limits.bytes {
                    let (input, heads) = wire.input_and_heads();
                    match RequestHead::take(input, heads, limits) {
                        Ok(Some(head)) => return Poll::Ready(NextHead::Request(head)),
                        Ok(None) => looked_at = wire.input.len(),
                        Err(fault) => return Poll::Ready(NextHead::Refused(fault)),
                    }
                }
                // A client does not know yet that the gateway drains. Its next request may be on its way, and is served.
                if !has_begun && worker.is_draining() && !is_hurried {
                    is_hurried = true;
                    timeout.set(NEXT_REQUEST_MAX);
                }
                match wire.poll_fill(context) {
                    Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(NextHead::Closed),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Pending if has_begun => {
                        let buffer = buffer.get_or_insert_with(|| worker.buffers.evictable(&self.connection.client));
                        buffer.set(wire.input.capacity());
                        if buffer.poll_evicted(context).is_ready() {
                            return Poll::Ready(NextHead::Failed(Failure::NoBuffer));
                        }
                        return timeout.poll(context).map(|()| NextHead::Failed(Failure::HeadTimeout));
                    }
                    Poll::Pending => {
                        wire.release_buffers();
                        return timeout.poll(context).map(|()| NextHead::Closed);
                    }
                }
            }
        })
        .await
    }

    /// Responds to a request.
    async fn respond(&mut self, head: RequestHead) -> After {
        if let Some(next) = self.connection.next_generation() {
            self.connection = next;
        }
        let connection = Rc::clone(&self.connection);
        let worker = &connection.worker;
        let _running = worker.requests.begin();
        let mut asked =
            ResponseContext { method: head.method.clone(), version: head.version, is_kept_alive: head.is_kept_alive };
        let sends_trailers = head.flags.has(HeadFlags::TE) && has_token(&head.headers, &TE, "trailers");
        let errors = &worker.errors;
        let form = if head.flags.has(HeadFlags::TYPE) {
            errors.form(&head.uri, &head.headers)
        } else {
            errors.body_form(&head.uri, &head.headers)
        };
        let id = connection.request_id(&head.headers);
        let record = RequestRecord::begin(&connection, &head.method, &head.uri, head.version, &head.headers, &id);
        if asked.method == Method::CONNECT {
            let timeouts = ExchangeTimeouts::new(&worker.config.timeouts, RouteTimeouts::default());
            let exchange = Exchange::new(id, timeouts, record);
            let response = Failure::Connection.response_in(form, errors).map(BufferedBody::own);
            // The bytes that follow are not a request, and are not read.
            self.client.borrow_mut().decoder = head.body;
            let mut total = worker.timer.timeout(Duration::ZERO);
            return self.send_response(response, &exchange, &mut asked, &mut total, sends_trailers).await;
        }
        let (mut parts, framing) = split(head);
        let target = worker.rules.target(&mut parts);
        let arrival = Arrival::new(&connection, &target, &parts);
        let exchange = Exchange::new(id, arrival.timeouts(&connection), record);
        let mut total = worker.timer.timeout(arrival.total_after(&connection));
        let inbound = self.inbound(&parts, framing, &exchange);
        self.client.borrow_mut().may_half_close = !arrival.ends_with_client(&connection);
        let mut waiting = WaitingHttp1Client { client: &self.client, exchange: &exchange, worker, total: &mut total };
        let response = match pass_on(arrival, parts, inbound, &mut waiting).await {
            Ok(response) => response,
            Err(Failure::ClientGone) => return After::Closes,
            // The body may not have been read, or an upstream may still work on the request: the connection ends.
            Err(failure) => {
                asked.is_kept_alive = false;
                total.set(exchange.timeouts.stall);
                exchange.note(|record| record.note_refused(failure));
                failure.response_in(form, &worker.errors).map(BufferedBody::own)
            }
        };
        self.send_response(response, &exchange, &mut asked, &mut total, sends_trailers).await
    }

    async fn send_response(
        &mut self,
        response: Response<BufferedBody>,
        exchange: &Rc<Exchange>,
        asked: &mut ResponseContext,
        total: &mut Timeout,
        sends_trailers: bool,
    ) -> After {
        let worker = &self.connection.worker;
        worker.metrics.request_ended(response.status());
        let (mut parts, mut body) = response.into_parts();
        exchange.note(|record| record.note_response(parts.status, body.own_length()));
        if let Some(value) = exchange.debug_header() {
            parts.headers.insert(DEBUG, value);
        }
        // An unread body is in the way of the next request.
        let is_unread = || !self.client.borrow().decoder.is_done();
        if worker.is_draining() || is_unread() && Rc::strong_count(&self.client) == 1 {
            asked.is_kept_alive = false;
        }
        let encoder = {
            let client = &mut *self.client.borrow_mut();
            // The permission to send the body would land in the middle of the response.
            client.owes_continue = false;
            let wire = &mut client.wire;
            put_interim(wire, exchange);
            let encoder = response_head::put(wire.output(), &parts, &exchange.id, &body, asked, || worker.timer.date());
            // The memory of this response's headers is used for the next request.
            wire.heads().give_back(std::mem::take(&mut parts.headers));
            encoder
        };
        let mut relay = Relay {
            client: &self.client,
            exchange,
            connection: &self.connection,
            buffer: None,
            minimum_rate: MinimumRate::new(&worker.timer, worker.config.limits.body_bytes_per_second_min),
            total,
            sends_trailers,
        };
        match relay.run(&mut body, encoder).await {
            Err(_) => After::Closes,
            Ok(()) if parts.status == StatusCode::SWITCHING_PROTOCOLS => {
                let (long_running, stall) = (body.take_long_running(), exchange.timeouts.stall);
                let upgraded = body.take_upgraded().map(|upstream| Upgrade { upstream, long_running, stall });
                upgraded.map_or(After::Closes, |upgrade| After::Upgrades(Box::new(upgrade)))
            }
            Ok(()) if is_unread() => After::Lingers,
            Ok(()) if !asked.is_kept_alive => After::Lingers,
            Ok(()) => After::GoesOn,
        }
    }

    /// The parts of a request that go with its head to where it is forwarded.
    fn inbound(&self, parts: &Parts, framing: Framing, exchange: &Rc<Exchange>) -> Inbound {
        {
            let mut client = self.client.borrow_mut();
            client.decoder = framing.body;
            client.owes_continue = framing.expects_continue;
        }
        let body = RequestBody::http1(&self.client, exchange, &self.connection.worker);
        // Bytes after a body could not be told from it, and HTTP/2 begins in its own way.
        let is_upgrade =
            framing.is_upgrade && body.is_none() && !has_token(&parts.headers, &http::header::UPGRADE, "h2c");
        let (connection, exchange) = (Rc::clone(&self.connection), Rc::clone(exchange));
        Inbound { connection, body, exchange, is_upgrade, flags: framing.flags }
    }

    /// Responds to a client that has not sent a whole head, or an invalid one.
    async fn refuse(&mut self, response: Response<ResponseBody>) -> After {
        let worker = Rc::clone(&self.connection.worker);
        let timeouts = ExchangeTimeouts::new(&worker.config.timeouts, RouteTimeouts::default());
        let exchange = Exchange::new(worker.request_ids.make(), timeouts, None);
        let mut asked = ResponseContext { method: Method::GET, version: http::Version::HTTP_11, is_kept_alive: false };
        let mut total = worker.timer.timeout(worker.config.timeouts.stall);
        self.send_response(response.map(BufferedBody::own), &exchange, &mut asked, &mut total, false).await
    }

    /// The connection, if nothing else uses it any more.
    fn into_wire(self) -> Option<Wire> {
        Rc::into_inner(self.client).map(|client| client.into_inner().wire)
    }

    async fn linger(self) {
        linger(&self.client, &self.connection.worker.timer).await;
    }

    async fn into_http2(self) {
        let connection = Rc::clone(&self.connection);
        if let Some(wire) = self.into_wire() {
            serve_http2(connection, Rewound::new(wire.input.freeze(), wire.stream)).await;
        }
    }

    /// Connects client and upstream, which speak another protocol from now on. The request counts as long-running until they have
    /// ended.
    async fn upgrade(self, upgrade: Box<Upgrade>) {
        let Upgrade { upstream, long_running, stall } = *upgrade;
        // The connection still counts for its client.
        let connection = Rc::clone(&self.connection);
        if let Some(client) = self.into_wire() {
            let _running = connection.worker.requests.begin();
            upgrade::run(client, *upstream, &connection.worker, stall).await;
        }
        drop(long_running);
    }
}

/// Takes a head apart: what a request asks for, and how it is framed.
fn split(head: RequestHead) -> (Parts, Framing) {
    let (mut parts, ()) = Request::new(()).into_parts();
    (parts.method, parts.uri, parts.version) = (head.method, head.uri, head.version);
    parts.headers = head.headers;
    let RequestHead { body, expects_continue, is_upgrade, flags, .. } = head;
    (parts, Framing { body, expects_continue, is_upgrade, flags })
}

// === impl WaitingHttp1Client ===

impl WaitingClient for WaitingHttp1Client<'_> {
    fn poll_total(&mut self, context: &Context<'_>) -> Poll<()> {
        self.total.poll(context)
    }

    fn begin_waiting(&mut self) {
        self.client.borrow_mut().asked_at = self.worker.timer.now();
    }

    fn poll_left(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut client = self.client.borrow_mut();
        put_interim(&mut client.wire, self.exchange);
        if client.wire.has_output() && matches!(client.wire.poll_flush(context), Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        if disconnect::has_left(&mut client, &self.worker.timer, context) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// Puts interim responses on the wire. A client that does not read misses them, which does no harm: they are only hints.
fn put_interim(wire: &mut Wire, exchange: &Exchange) {
    for (status, headers) in exchange.take_interim() {
        if !wire.is_full() {
            response_head::put_interim(wire.output(), status, &headers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the future that a function returns.
    fn future_size<F: Future>(_function: fn(Rc<Connection>, Stream, [usize; 4]) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn what_an_idle_connection_holds_is_small() {
        let sizes = [future_size(serve), size_of::<RefCell<ClientWire>>(), size_of::<Connection>()];
        println!("future, wire and connection: {sizes:?} bytes");
        assert!(sizes[0] <= 256 && sizes[1] <= 192 && sizes[2] <= 160, "{sizes:?}");
    }
}
