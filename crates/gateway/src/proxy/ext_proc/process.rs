//! One stream: the life of one request that Envoy forwards.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Once;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use evenkeel::Rejected;
use evenkeel::service::FlowBody;
use http::header::UPGRADE;
use http::{Response, StatusCode, Version};
use http_body::Body;
use http_body_util::{BodyExt, Collected};
use tokio::sync::oneshot;

use super::flow::{ForwardedBody, HeldFuture, HeldRequest, Started};
use super::grpc::{Code, Messages, Outgoing, Status};
use super::head::{client_of, head_of, list_bytes, version_of};
use super::messages::{HttpHeaders, ProcessingRequest, ProcessingResponse, Step};
use super::short_waits::ShortWaits;
use crate::config::RouteTimeouts;
use crate::observe::metrics::ExtProcOutcome;
use crate::proxy::arrival::Arrival;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::Failure;
use crate::proxy::exchange::{Exchange, ExchangeTimeouts};
use crate::proxy::record::RequestRecord;
use crate::proxy::serve::{LoggedRequest, normalize_head};
use crate::proxy::worker::Worker;

/// A stream of Envoy, which describes one request.
pub(super) struct RequestStream {
    pub(super) worker: Rc<Worker>,
    /// The address that Envoy connects from.
    pub(super) envoy: SocketAddr,
    pub(super) messages: Messages,
    pub(super) outgoing: Outgoing,
}

/// How far a request is.
struct Course {
    /// None when the response has come.
    future: Option<Pin<Box<HeldFuture>>>,
    /// None when the request has its seat, or will not get one.
    started: Option<oneshot::Receiver<Started>>,
    /// None when the response has come.
    responded: Option<oneshot::Sender<StatusCode>>,
    asks_for_response: bool,
}

/// A request that has no seat yet. If it never gets one, it has left, whichever way its stream ends: when Envoy resets the stream, it is dropped.
struct WaitingForSeat {
    worker: Rc<Worker>,
    arrived: Instant,
    is_over: bool,
}

/// What a request has come to.
enum Next {
    Started(Started),
    /// Before the request has started, the flow control responds; after that, the upstream.
    Response(Box<Response<FlowBody<ForwardedBody>>>),
    Message(ProcessingRequest),
    Ended,
}

thread_local! {
    /// The waits of this worker's requests.
    static SHORT_WAITS: RefCell<ShortWaits> = const { RefCell::new(ShortWaits::NONE) };
}

// === impl RequestStream ===

impl RequestStream {
    /// Runs the stream until Envoy ends it, or there is nothing more to say.
    pub(super) async fn run(mut self) -> Result<(), Status> {
        let first = poll_fn(|context| self.messages.poll_next::<ProcessingRequest>(context));
        let first = match self.worker.timer.limit(self.worker.config.timeouts.head, first).await {
            Ok(Some(message)) => message?,
            Ok(None) => return Ok(()),
            Err(_) => return Err(Status::new(Code::DeadlineExceeded, "no message arrived within `timeouts.head`")),
        };
        let Some(Step::RequestHeaders(headers)) = first.step else {
            let text = "the first message has no request_headers; set request_header_mode: SEND";
            return Err(Status::new(Code::InvalidArgument, text));
        };
        let connection = Connection::of_envoy(&self.worker, client_of(&first.attributes, self.envoy));
        if first.observability_mode {
            self.observe(&connection, headers).await;
            return Ok(());
        }
        self.decide(&connection, headers, version_of(&first.attributes)).await
    }

    async fn decide(
        mut self,
        connection: &Rc<Connection>,
        headers: HttpHeaders,
        version: Version,
    ) -> Result<(), Status> {
        let worker = Rc::clone(&connection.worker);
        let is_too_long = list_bytes(&headers) > worker.config.limits.head_bytes;
        let mut parts = head_of(headers)?;
        parts.version = version;
        let _running = worker.requests.begin();
        let id = connection.request_id(&parts.headers);
        let record = RequestRecord::begin(connection, &parts.method, &parts.uri, parts.version, &parts.headers, &id);
        let record = record.map(RequestRecord::over_ext_proc);
        let is_too_long = if is_too_long { Err(Failure::TooManyFields) } else { Ok(()) };
        if let Err(failure) = is_too_long.and_then(|()| normalize_head(&mut parts, worker.config.limits.headers)) {
            let timeouts = ExchangeTimeouts::new(&worker.config.timeouts, RouteTimeouts::default());
            let exchange = Exchange::new(id, timeouts, record);
            exchange.note(|record| record.note_refused(failure));
            let response = failure.response(&parts.uri, &parts.headers, &worker.errors);
            return self.respond(response, "malformed", &exchange).await;
        }
        let target = worker.rules.target(&mut parts);
        let arrival = Arrival::new(connection, &target, &parts);
        let exchange = Exchange::new(id, arrival.timeouts(connection), record);
        let logged = LoggedRequest { connection, exchange: &exchange, target: &target };
        logged.note_arrival(&arrival);
        let asks_for_response = worker.config.ext_proc.as_ref().is_some_and(|settings| settings.statuses)
            || arrival.is_long_running()
            || parts.headers.contains_key(UPGRADE);
        let Arrival { digested, user, pool, .. } = arrival;
        let pool = match pool {
            Ok(found) => found.pool,
            Err(failure) => {
                exchange.note(|record| record.note_refused(failure));
                let response = failure.response(&parts.uri, &parts.headers, &worker.errors);
                return self.respond(response, "unknown-service", &exchange).await;
            }
        };
        let Some(flow) = &pool.held_flow else { return Ok(()) };
        let ((start, started), (respond, responded)) = (oneshot::channel(), oneshot::channel());
        let (connection, exchange_too) = (Rc::clone(connection), Rc::clone(&exchange));
        let held = HeldRequest { connection, exchange: exchange_too, started: start, responded };
        let mut course = Course {
            future: Some(Box::pin(flow.call(digested, &user, parts, held))),
            started: Some(started),
            responded: Some(respond),
            asks_for_response,
        };
        let mut waiting = WaitingForSeat { worker: Rc::clone(&worker), arrived: Instant::now(), is_over: false };
        // The response, while Envoy sends it.
        let mut response_under_way = None;
        loop {
            match poll_fn(|context| course.poll_next(&mut self.messages, context)).await? {
                Next::Started(started) => {
                    course.started = None;
                    waiting.is_over = true;
                    SHORT_WAITS.with_borrow_mut(|waits| waits.stayed_for(waiting.arrived.elapsed()));
                    worker.metrics.ext_proc_request(ExtProcOutcome::Started);
                    self.outgoing.send(&ProcessingResponse::start(&started, course.asks_for_response));
                }
                Next::Response(response) if course.started.is_some() => {
                    waiting.is_over = true;
                    logged.note_response(&response, user.as_ref().ok().map(|user| &**user));
                    let reason = response.extensions().get::<Rejected>().map(|rejected| rejected.reason.as_str());
                    return self.respond(*response, reason.unwrap_or("refused"), &exchange).await;
                }
                Next::Response(response) => response_under_way = Some(response),
                Next::Message(message) => self.step(message, &mut course, &exchange)?,
                Next::Ended => break,
            }
        }
        if course.started.is_none()
            && let (Some(respond), Some(future)) = (course.responded, course.future)
        {
            // What Envoy does not tell counts as a good response: a request that is merely dropped would count as one that failed.
            let _ = respond.send(StatusCode::OK);
            response_under_way = future.await.ok().map(Box::new);
        }
        drop(response_under_way);
        exchange.note(RequestRecord::note_ended);
        Ok(())
    }

    /// A later step of the request or of its response.
    fn step(&self, message: ProcessingRequest, course: &mut Course, exchange: &Exchange) -> Result<(), Status> {
        let Some(step) = message.step else { return Ok(()) };
        if course.started.is_some() {
            let text = "a message came before the response to request_headers; set the modes of bodies and trailers to NONE or SKIP";
            return Err(Status::new(Code::InvalidArgument, text));
        }
        if let Step::ResponseHeaders(headers) = &step
            && let Some(status) = status_of(headers)
        {
            exchange.note(|record| record.note_response(status, None));
            self.worker.metrics.request_ended(status);
            if let Some(respond) = course.responded.take() {
                // No task waits for the status if the request is not limited by seats.
                let _ = respond.send(status);
            }
        }
        self.outgoing.send(&ProcessingResponse::go_on(&step));
        Ok(())
    }

    /// Envoy is told to send this response, which ends the request.
    async fn respond<B>(self, response: Response<B>, reason: &'static str, exchange: &Exchange) -> Result<(), Status>
    where
        B: Body<Data = Bytes>,
    {
        let (parts, body) = response.into_parts();
        let response = Response::from_parts(parts, ());
        // All of it is there already.
        let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
        self.worker.metrics.ext_proc_request(ExtProcOutcome::Rejected);
        self.worker.metrics.request_ended(response.status());
        exchange.note(|record| record.note_response(response.status(), Some(body.len() as u64)));
        self.outgoing.send(&ProcessingResponse::respond(&response, body, reason));
        Ok(())
    }
}

// === impl Course ===

impl Course {
    fn poll_next(&mut self, messages: &mut Messages, context: &mut Context<'_>) -> Poll<Result<Next, Status>> {
        if let Some(future) = &mut self.future
            && let Poll::Ready(Ok(response)) = future.as_mut().poll(context)
        {
            self.future = None;
            return Poll::Ready(Ok(Next::Response(Box::new(response))));
        }
        if let Some(started) = &mut self.started
            && let Poll::Ready(Ok(started)) = Pin::new(started).poll(context)
        {
            return Poll::Ready(Ok(Next::Started(started)));
        }
        messages.poll_next(context).map(|message| message.map_or(Ok(Next::Ended), |message| message.map(Next::Message)))
    }
}

// === impl WaitingForSeat ===

impl Drop for WaitingForSeat {
    fn drop(&mut self) {
        if !self.is_over {
            self.worker.metrics.ext_proc_request(ExtProcOutcome::Left);
            note_left(self.arrived.elapsed());
        }
    }
}

/// The status that the head of a response says.
fn status_of(headers: &HttpHeaders) -> Option<StatusCode> {
    let headers = &headers.headers.as_ref()?.headers;
    let status = headers.iter().find(|header| header.key == ":status")?;
    let text = if status.raw_value.is_empty() { status.value.as_bytes() } else { &status.raw_value };
    StatusCode::from_bytes(text).ok()
}

/// A request left the queue without a seat: because its client left, or because Envoy's time for a response was over. Envoy does not say why.
fn note_left(waited: Duration) {
    static WARNING: Once = Once::new();
    let timeout = SHORT_WAITS.with_borrow_mut(|waits| waits.left_after(waited));
    if let Some(timeout) = timeout {
        WARNING.call_once(|| {
            tracing::warn!(
                timeout_ms = timeout.as_millis(),
                "all requests that waited for a seat were given up after the same time; if that is message_timeout of Envoy's ext_proc filter (200 ms by default), set it to more than `timeouts.queue`"
            );
        });
    }
}
