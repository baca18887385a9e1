//! `Http2Connection`: a connection of HTTP/2 to an upstream, which many requests share.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioIo, TokioTimer};

use super::liveness::{Liveness, MonitoredStream};
use crate::net::Stream;
use crate::proxy::request_body::RequestBody;
use crate::proxy::worker::OnWorker;
use crate::timeouts::CoarseTimer;

/// A connection, and the progress of its requests. It closes when its last user drops it.
pub(super) struct Http2Connection {
    sender: SendRequest<RequestBody>,
    run: Run,
    timer: Rc<CoarseTimer>,
    /// How many requests are on it, and since when there is none.
    requests: Cell<usize>,
    idle_since: Cell<u64>,
    liveness: Rc<Liveness>,
    /// How many ticks it may be silent while requests wait.
    silence_max: u64,
}

/// The place of a request on a connection. There is room for another one when it is dropped.
#[derive(Debug)]
pub(crate) struct Http2Stream(Rc<Http2Connection>);

/// The future that runs a connection, until it has ended.
type Run = Rc<RefCell<Option<http2::Connection<TokioIo<MonitoredStream>, RequestBody, OnWorker>>>>;

/// A window that lets a stream go on while its updates are under way, and bounds the memory of a stream.
const STREAM_WINDOW: u32 = 128 * 1024;
/// The window of the connection is the largest that HTTP/2 allows: unread responses must not hold up others. Memory is bounded by
/// the windows of the streams, and by how many requests run.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;
/// A connection on which nothing at all has come for so long after a request may be dead, and gets no more until something comes.
/// No ping is sent: servers of gRPC close connections with more than one ping in five minutes.
const SILENCE_MAX: Duration = Duration::from_secs(5);

// === impl Http2Connection ===

impl Http2Connection {
    /// Speaks HTTP/2 on a connection. A request on it is given up after the time given, if that is not zero.
    pub(super) async fn begin(
        stream: Stream,
        timer: &Rc<CoarseTimer>,
        response_after: Duration,
    ) -> hyper::Result<Rc<Self>> {
        let liveness = Rc::<Liveness>::default();
        let (sender, run) = http2::Builder::new(OnWorker)
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(TokioIo::new(MonitoredStream::new(stream, &liveness)))
            .await?;
        let run = Rc::new(RefCell::new(Some(run)));
        tokio::task::spawn_local(to_the_end(Rc::clone(&run)));
        let silence_max = if response_after.is_zero() { SILENCE_MAX } else { SILENCE_MAX.min(response_after) };
        Ok(Rc::new(Self {
            sender,
            run,
            timer: Rc::clone(timer),
            requests: Cell::new(0),
            idle_since: Cell::new(timer.now()),
            liveness,
            silence_max: CoarseTimer::count(silence_max),
        }))
    }

    /// Takes a place on it for a request.
    pub(super) fn open(self: &Rc<Self>) -> Http2Stream {
        self.requests.set(self.requests.get() + 1);
        Http2Stream(Rc::clone(self))
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether another request would be sent at once, and is likely to get a response.
    pub(super) fn has_room(&self) -> bool {
        let streams_max = self.run.try_borrow().ok().and_then(|run| Some(run.as_ref()?.current_max_send_streams()));
        !self.is_suspect() && streams_max.is_some_and(|max| self.requests.get() < max)
    }

    /// Whether it has no requests, and has had none for so many ticks or cannot take any.
    pub(super) fn is_of_no_use(&self, idle_max: u64) -> bool {
        let idle = self.timer.now().saturating_sub(self.idle_since.get());
        self.requests.get() == 0 && (idle >= idle_max || self.is_suspect())
    }

    fn is_suspect(&self) -> bool {
        self.liveness.silent_since().is_some_and(|since| self.timer.now().saturating_sub(since) >= self.silence_max)
    }
}

impl fmt::Debug for Http2Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Http2Connection").field("requests", &self.requests).finish_non_exhaustive()
    }
}

/// Runs a connection until it ends, by itself or because its last user has dropped it.
async fn to_the_end(run: Run) {
    let ended = poll_fn(|context| match &mut *run.borrow_mut() {
        Some(run) => Pin::new(run).poll(context),
        None => Poll::Ready(Ok(())),
    });
    if let Err(error) = ended.await {
        tracing::debug!(%error, "an HTTP/2 connection to an upstream failed");
    }
    // Requests that were not sent go back to their senders.
    let over = run.borrow_mut().take();
    drop(over);
}

// === impl Http2Stream ===

impl Http2Stream {
    /// Sends a request. If the connection has taken it no more, it is given back.
    pub(crate) async fn call(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, Option<Request<RequestBody>>> {
        self.0.liveness.listen(self.0.timer.now());
        let mut sender = self.0.sender.clone();
        sender.try_send_request(request).await.map_err(|mut error| error.take_message())
    }

    /// Whether the other side has said something in HTTP/2.
    pub(crate) fn is_confirmed(&self) -> bool {
        self.0.liveness.is_http2()
    }
}

impl Drop for Http2Stream {
    fn drop(&mut self) {
        self.0.requests.set(self.0.requests.get().saturating_sub(1));
        self.0.idle_since.set(self.0.timer.now());
    }
}
