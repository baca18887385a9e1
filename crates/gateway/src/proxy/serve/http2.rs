//! Serves a client's connection that speaks HTTP/2.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioIo, TokioTimer};

use super::buffered_body::{BodyOfStream, BufferedBody, SharedBody};
use super::http2_head;
use super::pass_on::{WaitingClient, pass_on};
use super::stream_count::{RunningStream, StreamCount};
use super::stream_executor::{StreamExecutor, StreamRequest};
use super::websocket::WebSocket;
use crate::config::RouteTimeouts;
use crate::http1::HeadFlags;
use crate::net::{EagerWrites, Rewound};
use crate::proxy::arrival::Arrival;
use crate::proxy::connection::Connection;
use crate::proxy::error_response::Failure;
use crate::proxy::exchange::{Exchange, ExchangeTimeouts, Inbound};
use crate::proxy::forward::REQUEST_ID;
use crate::proxy::record::{DEBUG, RequestRecord};
use crate::proxy::request_body::RequestBody;
use crate::proxy::response_body::ResponseBodyError;
use crate::proxy::worker::{OpenStream, RunningRequest, Worker};
use crate::timeouts::{SharedTimeout, StreamProgress, TrackedBody};

/// Handles the requests of one connection.
struct RequestHandler {
    /// The connection under the settings in effect.
    connection: RefCell<Rc<Connection>>,
    /// Counts a stream for each request that runs.
    streams: StreamCount,
}

/// A client that waits for the response to a request. hyper notices when the client leaves, and drops the request.
struct WaitingHttp2Client<'a>(&'a SharedTimeout);

/// A running request: counted by its connection and by the gateway.
#[derive(Debug)]
struct Running {
    _stream: RunningStream,
    _request: RunningRequest,
    _of_client: Option<OpenStream>,
}

/// The body of a response, with the count of its request.
type CountedResponseBody = TrackedBody<CountedBody>;

pin_project_lite::pin_project! {
    /// A body whose request runs until it is dropped.
    #[derive(Debug)]
    struct CountedBody {
        #[pin]
        body: SharedBody,
        running: Running,
    }
}

/// The bytes of a waiting request's body that are kept, for each stream.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The largest window that there is.
const WINDOW_MAX: u32 = (1 << 31) - 1;
/// The bytes of a response that hyper keeps for a client that reads slowly, for each stream. They are not counted, so the number
/// is small.
const SEND_BUFFER: usize = 16 * 1024;

/// Serves a connection to its end.
pub(crate) async fn serve(connection: Rc<Connection>, stream: Rewound) {
    let worker = Rc::clone(&connection.worker);
    let limits = &worker.config.limits;
    let streams = StreamCount::default();
    let handler = RequestHandler { connection: RefCell::new(connection), streams: streams.clone() };
    let served = pin!(
        http2::Builder::new(StreamExecutor)
            .timer(TokioTimer::new())
            .max_concurrent_streams(limits.streams)
            .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(connection_window(limits.streams))
            .max_send_buf_size(SEND_BUFFER)
            .enable_connect_protocol()
            .serve_connection(TokioIo::new(EagerWrites::new(stream, &worker.timer)), handler)
    );
    if let Some(Err(error)) = streams.run_connection(served, http2::Connection::graceful_shutdown, &worker).await {
        tracing::debug!(%error, "an HTTP/2 connection failed");
    }
}

/// A window with room for all streams, so that the bodies of requests that wait hold up no others: those may be of other
/// users, and more urgent. Most of it is never used, since flow control bounds how many requests wait.
fn connection_window(streams: u32) -> u32 {
    streams.saturating_mul(STREAM_WINDOW).clamp(STREAM_WINDOW, WINDOW_MAX)
}

// === impl RequestHandler ===

impl RequestHandler {
    fn connection(&self) -> Rc<Connection> {
        let mut connection = self.connection.borrow_mut();
        if let Some(next) = connection.next_generation() {
            *connection = next;
        }
        Rc::clone(&connection)
    }
}

impl hyper::service::Service<Request<Incoming>> for RequestHandler {
    type Response = Response<CountedResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let connection = self.connection();
        let worker = Rc::clone(&connection.worker);
        let of_client = connection.client.open_stream();
        let has_room = of_client.is_some();
        let running = Running::begin(&self.streams, &worker, of_client);
        let (mut parts, body) = request.into_parts();
        let id = connection.request_id(&parts.headers);
        let websocket = (parts.method == Method::CONNECT).then(|| WebSocket::begin(&mut parts)).transpose();
        let websocket = websocket.and_then(|websocket| {
            http2_head::normalize(&mut parts, worker.config.limits.headers)?;
            if has_room { Ok(websocket) } else { Err(Failure::TooManyStreams) }
        });
        let record = RequestRecord::begin(&connection, &parts.method, &parts.uri, parts.version, &parts.headers, &id);
        let form = worker.errors.form(&parts.uri, &parts.headers);
        let streams = self.streams.clone();
        Box::pin(async move {
            let (progress, body_of_stream) = (Arc::<StreamProgress>::default(), BodyOfStream::default());
            let total = SharedTimeout::new(worker.timer.timeout(Duration::ZERO));
            let attach = |exchange: &Rc<Exchange>| {
                let stream = StreamRequest {
                    worker: Rc::clone(&worker),
                    progress: Arc::clone(&progress),
                    exchange: Rc::clone(exchange),
                    total: total.clone(),
                    body: Rc::clone(&body_of_stream),
                };
                stream.attach();
            };
            let (exchange, response) = match websocket {
                Err(failure) => {
                    if failure == Failure::TooManyStreams {
                        worker.metrics.client_refused();
                    }
                    let timeouts = ExchangeTimeouts::new(&worker.config.timeouts, RouteTimeouts::default());
                    let exchange = Exchange::new(id, timeouts, record);
                    attach(&exchange);
                    (exchange, Err(failure))
                }
                Ok(websocket) => {
                    let target = worker.rules.target(&mut parts);
                    let arrival = Arrival::new(&connection, &target, &parts);
                    let exchange = Exchange::new(id, arrival.timeouts(&connection), record);
                    total.set(arrival.total_after(&connection));
                    attach(&exchange);
                    let inbound = Inbound {
                        connection: Rc::clone(&connection),
                        body: RequestBody::http2(body, &exchange, &worker),
                        exchange: Rc::clone(&exchange),
                        is_upgrade: websocket.is_some(),
                        flags: HeadFlags::ANY,
                    };
                    let response = pass_on(arrival, parts, inbound, &mut WaitingHttp2Client(&total)).await;
                    let response = response.map(|response| match websocket {
                        None => response,
                        Some(websocket) => {
                            let running = Running::begin(&streams, &worker, connection.client.open_stream());
                            websocket.response(response, &exchange, &worker, running)
                        }
                    });
                    (exchange, response)
                }
            };
            let response = response.unwrap_or_else(|failure| {
                // The time that the client has to take this response.
                total.set(exchange.timeouts.stall);
                exchange.note(|record| record.note_refused(failure));
                failure.response_in(form, &worker.errors).map(BufferedBody::own)
            });
            worker.metrics.request_ended(response.status());
            exchange.note(|record| record.note_response(response.status(), response.body().own_length()));
            let mut response = response.map(|body| {
                let (limits, stall) = (&worker.config.limits, exchange.timeouts.stall);
                let body = SharedBody::new(body, &body_of_stream, limits, stall);
                TrackedBody::new(CountedBody { body, running }, progress)
            });
            response.headers_mut().insert(REQUEST_ID, exchange.id.clone());
            if let Some(value) = exchange.debug_header() {
                response.headers_mut().insert(DEBUG, value);
            }
            Ok(response)
        })
    }
}

// === impl WaitingHttp2Client ===

impl WaitingClient for WaitingHttp2Client<'_> {
    fn poll_total(&mut self, context: &Context<'_>) -> Poll<()> {
        self.0.poll(context)
    }
}

// === impl Running ===

impl Running {
    fn begin(streams: &StreamCount, worker: &Worker, of_client: Option<OpenStream>) -> Self {
        Self { _stream: streams.begin(), _request: worker.requests.begin(), _of_client: of_client }
    }
}

// === impl CountedBody ===

impl Body for CountedBody {
    type Data = Bytes;
    type Error = ResponseBodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.project().body.poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
