//! Runs the streams of one HTTP/2 connection on the worker's thread.
//!
//! hyper hands over a stream as a future that says nothing about its request. The request handler runs inside that future, so
//! it can tell the stream's task about its request: the task has a [`Stream`] for that, as a task-local value.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::buffered_body::BodyOfStream;
use crate::proxy::exchange::Exchange;
use crate::proxy::record::TIMEOUT;
use crate::proxy::worker::Worker;
use crate::timeouts::{IdleTimeout, MinimumRate, SharedTimeout, StreamProgress, StreamTimeout};

/// Runs streams, and ends those whose clients do not read or that take too long.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamExecutor;

/// The facts about its request that a stream's task has.
#[derive(Debug)]
pub(super) struct StreamRequest {
    pub(super) worker: Rc<Worker>,
    pub(super) progress: Arc<StreamProgress>,
    pub(super) exchange: Rc<Exchange>,
    /// The time for the whole request. The request handler checks it until there is a response, and from then on the stream's
    /// task: the body is not polled while the client has no room for it.
    pub(super) total: SharedTimeout,
    pub(super) body: BodyOfStream,
}

/// The place of a stream's request. It stays empty in a stream that carries a `WebSocket`, which has no limits.
type Stream = RefCell<Option<StreamRequest>>;

/// The limits that end a stream.
struct StreamLimits {
    request: StreamRequest,
    unread: StreamTimeout<IdleTimeout<Exchange>>,
    minimum_rate: MinimumRate,
}

tokio::task_local! {
    /// The stream that this task runs.
    static STREAM: Rc<Stream>;
}

// === impl StreamExecutor ===

impl<F: Future + 'static> hyper::rt::Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        let place = Rc::<Stream>::default();
        tokio::task::spawn_local(STREAM.scope(Rc::clone(&place), run(stream, place)));
    }
}

/// Runs a stream to its end, or until a limit ends it.
async fn run(stream: impl Future, place: Rc<Stream>) {
    let (mut stream, mut limits) = (pin!(stream), None);
    poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        if let Some(request) = place.take() {
            limits = Some(StreamLimits::new(request));
        }
        limits.as_mut().map_or(Poll::Pending, |limits| limits.poll(context))
    })
    .await;
}

// === impl StreamRequest ===

impl StreamRequest {
    /// Tells the task of the stream that the caller runs in.
    pub(super) fn attach(self) {
        // Every request of HTTP/2 runs in a stream's task.
        let _ = STREAM.try_with(|place| place.replace(Some(self)));
    }
}

// === impl StreamLimits ===

impl StreamLimits {
    fn new(request: StreamRequest) -> Self {
        let worker = &request.worker;
        let after = request.exchange.timeouts.stall;
        let idle = IdleTimeout::new(&worker.timer, &request.exchange, after);
        let unread = StreamTimeout::new(Arc::clone(&request.progress), idle, after);
        let minimum_rate = MinimumRate::new(&worker.timer, worker.config.limits.body_bytes_per_second_min);
        Self { request, unread, minimum_rate }
    }

    /// Ready if the stream has to end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.poll_ahead(context).is_ready() || self.unread.poll(context).is_ready() {
            return Poll::Ready(());
        }
        let is_over = self.request.total.poll(context);
        if is_over.is_ready() {
            self.request.exchange.note(|record| record.note_cut_off(TIMEOUT));
        }
        is_over
    }

    /// Reads the response ahead while the client is slow to take it: the request does not keep its seats for that. Ready if
    /// there is no room for the response and its client is too slow.
    fn poll_ahead(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(body) = self.request.body.borrow().upgrade() else { return Poll::Pending };
        let mut body = body.borrow_mut();
        self.minimum_rate.note(body.take_sent());
        // A client that has room waits for the upstream.
        if !self.request.progress.is_waiting() {
            return Poll::Pending;
        }
        body.poll_ahead(context);
        if !body.is_held_up() {
            return Poll::Pending;
        }
        let slow = self.minimum_rate.poll_slow(context);
        if slow.is_ready() {
            self.request.worker.metrics.client_too_slow();
        }
        slow
    }
}
