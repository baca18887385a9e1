//! `Admit`: the future of a request that has arrived.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use evenkeel_engine::queue_set::Phase;
use evenkeel_engine::time::Instant;
use tokio::time::Sleep;

use crate::control::admission::Admission;
use crate::control::permit::Permit;
use crate::control::rejected::Rejected;

/// Waits until a request may run. Made by [`FlowControl::admit`](crate::FlowControl::admit).
///
/// The request has already arrived; dropping this future gives it up.
#[must_use = "the request is given up when this future is dropped"]
#[derive(Debug)]
pub struct Admit {
    state: State,
    /// Only where no task looks at the timers of the levels, and apart: a request that need not wait does not carry it about.
    timer: Option<Pin<Box<Sleep>>>,
}

/// Where the request is.
#[derive(Debug)]
enum State {
    Started(Permit),
    Waiting(Admission, Instant),
    Rejected(Box<Rejected>),
    Done,
}

// === impl Admit ===

impl Admit {
    pub(crate) fn started(permit: Permit) -> Self {
        Self { state: State::Started(permit), timer: None }
    }

    pub(crate) fn waiting(admission: Admission, until: Instant) -> Self {
        Self { state: State::Waiting(admission, until), timer: None }
    }

    pub(crate) fn rejected(rejected: Rejected) -> Self {
        Self { state: State::Rejected(Box::new(rejected)), timer: None }
    }
}

impl Admit {
    /// The permit of a request that has been started at once, and otherwise what waits for it.
    #[inline]
    pub(crate) fn into_permit(self) -> Result<Permit, Self> {
        match self.state {
            State::Started(permit) => Ok(permit),
            state => Err(Self { state, timer: self.timer }),
        }
    }
}

impl Future for Admit {
    type Output = Result<Permit, Rejected>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        match std::mem::replace(&mut this.state, State::Done) {
            State::Started(permit) => Poll::Ready(Ok(permit)),
            State::Rejected(rejected) => Poll::Ready(Err(*rejected)),
            State::Done => Poll::Pending,
            State::Waiting(admission, until) => {
                let mut phase = admission.phase_or_wake(context.waker());
                if phase == Some(Phase::Waiting) && is_over(&mut this.timer, &admission, until, context) {
                    phase = admission.phase_after_timeouts();
                    // Only if the clock is behind the timer: another one is made then.
                    if phase == Some(Phase::Waiting) {
                        this.timer = None;
                        context.waker().wake_by_ref();
                    }
                }
                match phase {
                    Some(Phase::Waiting) => {}
                    Some(Phase::Executing | Phase::Lingering) => return Poll::Ready(Ok(Permit::new(admission))),
                    None => return Poll::Ready(Err(admission.timed_out())),
                }
                this.state = State::Waiting(admission, until);
                Poll::Pending
            }
        }
    }
}

/// Whether a request has waited as long as it may and has to look after that itself, since no task does.
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
