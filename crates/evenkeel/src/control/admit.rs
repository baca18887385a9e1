//! `Admit` and `Arrived`: a request that asks to run, before and after it has its place in a level.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Phase, Rejection};
use evenkeel_engine::time::Instant;
use tokio::time::Sleep;

use crate::control::accounts::Throttled;
use crate::control::admission::Admission;
use crate::control::class::Class;
use crate::control::flow_control::FlowControl;
use crate::control::permit::Permit;
use crate::control::rejected::Rejected;
use crate::control::request::FlowRequest;
use crate::control::reused_box::ReusedBox;
use crate::control::work::EstimateWork;

/// Lets a request in: waits until it may run. Made by [`FlowControl::admit`].
///
/// Like every future, it does nothing until it is polled: the request is classified and gets its place in a queue with the
/// first poll. Dropping the future removes the request from its queue.
#[must_use = "futures do nothing unless you `.await` or poll them"]
pub struct Admit<'a, W = WorkEstimate> {
    flow: &'a FlowControl,
    state: AdmitState<'a, W>,
}

enum AdmitState<'a, W> {
    Unpolled(FlowRequest<'a, W>),
    Arrived(Arrived),
    Done,
}

/// A request that has arrived: it is classified, and runs, waits in a queue or is rejected. Made by
/// [`FlowControl::arrive`]; the future resolves when the request may run.
///
/// Dropping it removes the request from its queue.
#[must_use = "the request leaves its queue when this future is dropped"]
#[derive(Debug)]
pub struct Arrived(Option<ArrivalOutcome>);

/// The outcome of an arrival.
#[derive(Debug)]
pub(crate) enum ArrivalOutcome {
    Started(Permit),
    Waiting(Waiting),
    Rejected(Box<Rejected>),
}

/// A request in a queue.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// `None` when the future has resolved.
    admission: Option<ReusedBox<Admission>>,
    until: Instant,
    /// The wait limit as a timer, only where no task looks at the timers of the levels. Boxed, so that requests that do not wait stay small.
    timer: Option<Pin<Box<Sleep>>>,
    /// Set as long as the request waits for the rate of its flow, and is not in a queue yet.
    throttled: Option<Box<Throttled>>,
}

// === impl Admit ===

impl<'a, W> Admit<'a, W> {
    pub(crate) fn new(flow: &'a FlowControl, request: FlowRequest<'a, W>) -> Self {
        Self { flow, state: AdmitState::Unpolled(request) }
    }
}

/// No field of `Admit` is pinned.
impl<W> Unpin for Admit<'_, W> {}

impl<W: EstimateWork> Future for Admit<'_, W> {
    type Output = Result<Permit, Box<Rejected>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let AdmitState::Unpolled(request) = &this.state {
            // Borrowed rather than moved: a request is large.
            match this.flow.take_in_request(request) {
                ArrivalOutcome::Started(permit) => {
                    this.state = AdmitState::Done;
                    return Poll::Ready(Ok(permit));
                }
                other => this.state = AdmitState::Arrived(Arrived::new(other)),
            }
        }
        match &mut this.state {
            AdmitState::Arrived(arrived) => Pin::new(arrived).poll(context),
            AdmitState::Unpolled(_) | AdmitState::Done => Poll::Pending,
        }
    }
}

impl<W> fmt::Debug for Admit<'_, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            AdmitState::Unpolled(_) => "not polled",
            AdmitState::Arrived(_) => "arrived",
            AdmitState::Done => "done",
        };
        f.debug_tuple("Admit").field(&state).finish()
    }
}

// === impl Arrived ===

impl Arrived {
    pub(crate) fn new(outcome: ArrivalOutcome) -> Self {
        Self(Some(outcome))
    }
}

impl Future for Arrived {
    type Output = Result<Permit, Box<Rejected>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.take() {
            Some(ArrivalOutcome::Started(permit)) => Poll::Ready(Ok(permit)),
            Some(ArrivalOutcome::Rejected(rejected)) => Poll::Ready(Err(rejected)),
            Some(ArrivalOutcome::Waiting(mut waiting)) => {
                let result = Pin::new(&mut waiting).poll(context);
                if result.is_pending() {
                    self.0 = Some(ArrivalOutcome::Waiting(waiting));
                }
                result
            }
            None => Poll::Pending,
        }
    }
}

// === impl Waiting ===

impl Waiting {
    pub(crate) fn new(admission: ReusedBox<Admission>, until: Instant) -> Self {
        Self { admission: Some(admission), until, timer: None, throttled: None }
    }

    /// A request that waits for the rate of its flow.
    pub(crate) fn throttled(throttled: Throttled) -> Self {
        Self { admission: None, until: throttled.until, timer: None, throttled: Some(Box::new(throttled)) }
    }

    /// Where the request belongs, the seats that it will take and the queue that it is in, unless the future has resolved.
    pub(crate) fn class_seats_and_queue(&self) -> Option<(Class, u32, Option<u32>)> {
        if let Some(throttled) = &self.throttled {
            let (class, seats) = throttled.class_and_seats();
            return Some((class, seats, None));
        }
        let admission = self.admission.as_ref()?;
        Some((Class(Arc::clone(&admission.destination)), admission.seats.load(Ordering::Relaxed), admission.queue))
    }

    /// The time for the request is over, and it will be dropped.
    pub(crate) fn expire(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.has_expired = true;
        }
        if let Some(throttled) = &mut self.throttled {
            throttled.has_expired = true;
        }
    }

    /// How the request is counted if it is dropped now.
    pub(crate) fn reason_if_dropped(&self) -> Option<Rejection> {
        match &self.throttled {
            Some(throttled) => Some(throttled.reason_if_dropped()),
            None => self.admission.as_ref()?.reason_if_dropped(),
        }
    }
}

impl Future for Waiting {
    type Output = Result<Permit, Box<Rejected>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(throttled) = &mut this.throttled {
            ready!(throttled.poll_due(context));
            let Some(throttled) = this.throttled.take() else { return Poll::Pending };
            match throttled.go_on() {
                Some(ArrivalOutcome::Started(permit)) => return Poll::Ready(Ok(permit)),
                Some(ArrivalOutcome::Waiting(waiting)) => *this = waiting,
                Some(ArrivalOutcome::Rejected(rejected)) => return Poll::Ready(Err(rejected)),
                None => return Poll::Pending,
            }
        }
        let Some(admission) = this.admission.take() else { return Poll::Pending };
        let mut phase = admission.phase_or_wake(context.waker());
        if phase == Some(Phase::Waiting) && is_over(&mut this.timer, &admission, this.until, context) {
            phase = admission.phase_after_timeouts();
            // The clock of the flow control is behind the timer, so the request needs another timer.
            if phase == Some(Phase::Waiting) {
                this.timer = None;
                context.waker().wake_by_ref();
            }
        }
        match phase {
            Some(Phase::Waiting) => {
                this.admission = Some(admission);
                Poll::Pending
            }
            #[cfg(feature = "fleet")]
            Some(Phase::Executing) if admission.is_forbidden() => Poll::Ready(Err(Box::new(admission.rejected()))),
            Some(Phase::Executing | Phase::Lingering) => {
                admission.expect_anew();
                Poll::Ready(Ok(Permit::new(admission)))
            }
            None => Poll::Ready(Err(Box::new(admission.rejected()))),
        }
    }
}

/// Whether the wait limit of a request is over, where no task looks at the timers of the levels.
fn is_over(
    timer: &mut Option<Pin<Box<Sleep>>>,
    admission: &Admission,
    until: Instant,
    context: &mut Context<'_>,
) -> bool {
    let upkeep = &admission.destination.upkeep;
    if upkeep.has_keeper() {
        return false;
    }
    if timer.is_none() {
        *timer = upkeep.clock.timer(until).map(|at| Box::pin(tokio::time::sleep_until(at)));
    }
    match timer {
        Some(timer) => timer.as_mut().poll(context).is_ready(),
        None => upkeep.clock.now() >= until,
    }
}
