//! Requests whose clients have disconnected while an upstream works on them.
//!
//! A seat stands for the upstream's work, so it stays taken until the upstream is done, whatever the client does. A request that
//! is dropped while an upstream works on it is left to the worker. The worker waits for the upstream and discards its response,
//! or cancels the request and keeps the seat for as long as the request was expected to run. Requests of language models that are
//! cancelled keep no seats: servers stop generating at once, and clients are charged for the tokens.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use evenkeel::request::SharedPermit;
use evenkeel::service::FlowBody;
use http_body::Body;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::observe::metrics::WorkerMetrics;
use crate::proxy::exchange::{Exchange, OnLeave};
use crate::proxy::forward::RequestFuture;
use crate::proxy::response_body::ResponseBody;
use crate::proxy::service_times::{ServiceTimes, Started};
use crate::timeouts::CoarseTimer;

/// The handle by which requests whose clients have gone are left to the worker.
#[derive(Debug)]
pub(crate) struct Abandoned {
    work: UnboundedSender<Work>,
    /// How many abandoned requests there are. Seats bound their number, except for requests that are exempt.
    count: Rc<Cell<usize>>,
    count_max: Cell<usize>,
    metrics: WorkerMetrics,
}

/// The abandoned requests that the worker has to finish.
pub(crate) struct AbandonedWork {
    work: UnboundedReceiver<Work>,
    patience: Patience,
}

/// How long the worker waits for the rest of an abandoned request.
#[derive(Debug, Clone)]
struct Patience {
    timer: Rc<CoarseTimer>,
    times: Rc<ServiceTimes>,
}

/// The rest of one abandoned request.
enum Work {
    /// The upstream has not responded.
    Request(Box<RequestFuture>, Rc<Exchange>, AbandonedCount),
    /// The upstream has responded, and the body has not ended.
    Response(FlowBody<ResponseBody>, Rc<Exchange>, AbandonedCount),
    /// The request was cancelled, and its seats stay taken for as long as it would have run, at most for the time that an
    /// upstream has to respond to it.
    Seats(SharedPermit, Started, Duration, AbandonedCount),
}

/// An abandoned request in the count of them, for as long as it is kept.
struct AbandonedCount(Rc<Cell<usize>>, WorkerMetrics);

// === impl Abandoned ===

impl Abandoned {
    pub(crate) fn new(
        count_max: usize,
        service_times: &Rc<ServiceTimes>,
        timer: &Rc<CoarseTimer>,
        metrics: WorkerMetrics,
    ) -> (Self, AbandonedWork) {
        let (sender, work) = unbounded_channel();
        let abandoned = Self { work: sender, count: Rc::default(), count_max: Cell::new(count_max), metrics };
        let patience = Patience { timer: Rc::clone(timer), times: Rc::clone(service_times) };
        (abandoned, AbandonedWork { work, patience })
    }

    /// Sets how many abandoned requests are kept from now on.
    pub(crate) fn set_limit(&self, count_max: usize) {
        self.count_max.set(count_max);
    }

    /// The client of this request has left. If no upstream works on it, or it takes no seats, it is dropped: it leaves its
    /// queue, and its upstream's connection is closed.
    pub(crate) fn request(&self, mut future: RequestFuture, exchange: &Rc<Exchange>) {
        if !future.has_permit() {
            if let Some(waiting) = future.waiting_request() {
                exchange.note(|record| record.note_left(&waiting.admitted, future.reason_if_dropped()));
            }
            return;
        }
        match exchange.on_leave() {
            OnLeave::Wait(_) => {
                if let Some(counted) = self.count_if_at_upstream(exchange) {
                    exchange.note_client_left();
                    self.send(Work::Request(Box::new(future), Rc::clone(exchange), counted));
                }
            }
            OnLeave::Cancel(started) => {
                if let Some(counted) = self.count_if_at_upstream(exchange)
                    && let Some(permit) = Pin::new(&mut future).take_permit()
                {
                    self.send(Work::Seats(permit, started, exchange.timeouts.response, counted));
                }
            }
            OnLeave::Stop(request) => {
                if exchange.is_at_upstream()
                    && let Some(permit) = future.permit()
                {
                    permit.set_cost(request.leave_before_response());
                }
            }
        }
    }

    /// The client does not want the rest of this response. If the request has no seats, the response is dropped, which ends it.
    pub(crate) fn response(&self, mut body: FlowBody<ResponseBody>, exchange: &Rc<Exchange>) {
        if !body.has_permit() {
            return;
        }
        match exchange.on_leave() {
            OnLeave::Wait(_) => {
                if let Some(counted) = self.count_if_at_upstream(exchange) {
                    exchange.note_client_left();
                    self.send(Work::Response(body, Rc::clone(exchange), counted));
                }
            }
            OnLeave::Cancel(started) => {
                if let Some(counted) = self.count_if_at_upstream(exchange)
                    && let Some(permit) = Pin::new(&mut body).take_permit()
                {
                    self.send(Work::Seats(permit, started, exchange.timeouts.response, counted));
                }
            }
            // The part that the client has received is charged already.
            OnLeave::Stop(_) => {}
        }
    }

    fn count_if_at_upstream(&self, exchange: &Exchange) -> Option<AbandonedCount> {
        if !exchange.is_at_upstream() || self.count.get() >= self.count_max.get() {
            return None;
        }
        self.count.set(self.count.get() + 1);
        self.metrics.request_abandoned();
        Some(AbandonedCount(Rc::clone(&self.count), self.metrics.clone()))
    }

    fn send(&self, work: Work) {
        // Sending fails when the worker has ended. Then everything ends.
        let _ = self.work.send(work);
    }
}

// === impl AbandonedWork ===

impl AbandonedWork {
    /// Finishes abandoned requests, for as long as the worker runs.
    pub(crate) async fn run(mut self) {
        while let Some(work) = self.work.recv().await {
            let patience = self.patience.clone();
            tokio::task::spawn_local(async move { work.finish(&patience).await });
        }
    }
}

// === impl Patience ===

impl Patience {
    /// Waits until the upstream is done with a request. If the request is cancelled meanwhile, because its body came to no end,
    /// its rest is kept for as long as the request was expected to run.
    async fn wait(&self, work: impl Future<Output = ()>, exchange: &Exchange) {
        let mut work = pin!(work);
        let to_the_end = async {
            let cancelled = poll_fn(|context| match (work.as_mut().poll(context), exchange.on_leave()) {
                (Poll::Ready(()), _) => Poll::Ready(None),
                (Poll::Pending, OnLeave::Cancel(started)) => Poll::Ready(Some(started)),
                (Poll::Pending, OnLeave::Wait(_) | OnLeave::Stop(_)) => Poll::Pending,
            });
            if let Some(started) = cancelled.await {
                tokio::time::sleep(self.times.remaining(started)).await;
            }
        };
        let _ = self.timer.limit(exchange.timeouts.response, to_the_end).await;
    }
}

// === impl Work ===

impl Work {
    async fn finish(self, patience: &Patience) {
        // Dropping the rest after that time closes the upstream's connection.
        match self {
            Self::Request(future, exchange, _counted) => {
                let mut future = future;
                let work = async {
                    // A request that no client waits for ends first when others need its seats.
                    let response = poll_fn(|context| match Pin::new(&mut *future).poll(context) {
                        Poll::Ready(Ok(response)) => Poll::Ready(Some(response)),
                        Poll::Pending => future.poll_revoked(context).map(|()| None),
                    });
                    if let Some(response) = response.await {
                        discard(response.into_body()).await;
                    }
                };
                patience.wait(work, &exchange).await;
            }
            Self::Response(body, exchange, _counted) => patience.wait(discard(body), &exchange).await,
            Self::Seats(permit, started, response_after, _counted) => {
                let mut remaining = pin!(tokio::time::sleep(patience.times.remaining(started)));
                let over = poll_fn(|context| match remaining.as_mut().poll(context) {
                    Poll::Ready(()) => Poll::Ready(()),
                    Poll::Pending => permit.poll_revoked(context),
                });
                let _ = patience.timer.limit(response_after, over).await;
                drop(permit);
            }
        }
    }
}

/// Reads a response to its end, or until it gives its seats back.
async fn discard(mut body: FlowBody<ResponseBody>) {
    while body.has_permit() {
        let next = poll_fn(|context| match body.poll_revoked(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => Pin::new(&mut body).poll_frame(context),
        });
        match next.await {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return,
        }
        // A fast upstream does not keep others waiting.
        tokio::task::yield_now().await;
    }
}

// === impl AbandonedCount ===

impl Drop for AbandonedCount {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
        self.1.abandoned_request_ended();
    }
}
