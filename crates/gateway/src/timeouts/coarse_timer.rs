//! The coarse timer of a worker: checks all timeouts some times a second, instead of having a timer for each.
//!
//! Hardly any timeout ever fires, so they have to be cheap to set and to take back. Here that is a few instructions on the
//! worker's own memory; in return, a timeout may fire up to three ticks of the timer late. It never fires early.
//!
//! While the machine is suspended, hardly any time passes for the timer. So bytes that arrived meanwhile are read before a client
//! times out.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use slab::Slab;

/// How often the timeouts are checked.
const TICK: Duration = Duration::from_millis(50);
/// The clock goes on by so many ticks at a time, at most.
const TICKS_AT_ONCE: u64 = 2;

/// The timer of a worker.
#[derive(Debug)]
pub(crate) struct CoarseTimer {
    now: Cell<u64>,
    timeouts: RefCell<Slab<WaitingTask>>,
    date: RefCell<HeaderValue>,
}

/// A task to be woken.
#[derive(Debug)]
struct WaitingTask {
    at: u64,
    waker: Waker,
}

/// A timeout. It costs next to nothing until it is polled.
#[derive(Debug)]
pub(crate) struct Timeout {
    timer: Rc<CoarseTimer>,
    at: u64,
    key: Option<usize>,
}

/// The timeout fired first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

// === impl CoarseTimer ===

impl CoarseTimer {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self { now: Cell::new(0), timeouts: RefCell::default(), date: RefCell::new(date()) })
    }

    /// Runs the timer until the future is dropped.
    pub(crate) async fn run(self: Rc<Self>) {
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut last = tokio::time::Instant::now();
        loop {
            interval.tick().await;
            let passed = u64::try_from(last.elapsed().as_millis() / TICK.as_millis()).unwrap_or(u64::MAX);
            last += TICK.saturating_mul(u32::try_from(passed).unwrap_or(u32::MAX));
            self.advance(self.now.get() + passed.min(TICKS_AT_ONCE));
        }
    }

    /// Wakes those whose timeouts fire.
    pub(crate) fn advance(&self, now: u64) {
        const TICKS_A_SECOND: u64 = 20;
        if now / TICKS_A_SECOND != self.now.get() / TICKS_A_SECOND {
            *self.date.borrow_mut() = date();
        }
        self.now.set(now);
        self.wake(|waiting| waiting.at <= now);
    }

    /// Wakes all tasks, so that they see another change.
    pub(crate) fn wake_all(&self) {
        self.wake(|_| true);
    }

    fn wake(&self, which: impl Fn(&WaitingTask) -> bool) {
        // A task that is woken must find the list free.
        let timeouts = self.timeouts.borrow();
        let due = timeouts.iter().filter(|(_, waiting)| which(waiting)).map(|(_, waiting)| waiting.waker.clone());
        let due: Vec<Waker> = due.collect();
        drop(timeouts);
        due.into_iter().for_each(Waker::wake);
    }

    /// The current time, to compare with other times of this timer only.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// The number of ticks, rounded up.
    pub(crate) fn count(duration: Duration) -> u64 {
        u64::try_from(duration.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u64::MAX)
    }

    /// How long this many ticks take.
    pub(crate) fn duration(ticks: u64) -> Duration {
        TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }

    /// The time of day, as the header `Date` has it.
    pub(crate) fn date(&self) -> HeaderValue {
        self.date.borrow().clone()
    }

    /// A timeout that starts now. Zero means never.
    pub(crate) fn timeout(self: &Rc<Self>, duration: Duration) -> Timeout {
        let mut timeout = Timeout { timer: Rc::clone(self), at: u64::MAX, key: None };
        timeout.set(duration);
        timeout
    }

    /// The output of the future, unless that takes longer. Zero means no limit.
    pub(crate) async fn limit<F: Future>(self: &Rc<Self>, duration: Duration, future: F) -> Result<F::Output, Elapsed> {
        self.timeout(duration).limit(future).await
    }
}

fn date() -> HeaderValue {
    HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::now())).unwrap_or_else(|_| HeaderValue::from_static(""))
}

// === impl Timeout ===

impl Timeout {
    /// The current time of its timer.
    pub(crate) fn now(&self) -> u64 {
        self.timer.now()
    }

    /// Starts again. Zero means never.
    pub(crate) fn set(&mut self, duration: Duration) {
        self.set_from(self.now(), duration);
    }

    /// Starts again, as if at this time of its timer. Zero means never.
    pub(crate) fn set_from(&mut self, begin: u64, duration: Duration) {
        let ticks = if duration.is_zero() { u64::MAX } else { CoarseTimer::count(duration) };
        // The timer may be behind by that much.
        self.at = begin.saturating_add(ticks).saturating_add(TICKS_AT_ONCE);
        if let Some(key) = self.key
            && let Some(waiting) = self.timer.timeouts.borrow_mut().get_mut(key)
        {
            waiting.at = self.at;
        }
    }

    /// The output of the future, unless the timeout fires first.
    pub(crate) async fn limit<F: Future>(&mut self, future: F) -> Result<F::Output, Elapsed> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll(context).map(|()| Err(Elapsed)),
        })
        .await
    }

    /// Whether the time is over; if not, the task is woken when it is.
    pub(crate) fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        if self.at <= self.timer.now() {
            return Poll::Ready(());
        }
        if self.at == u64::MAX {
            return Poll::Pending;
        }
        let mut timeouts = self.timer.timeouts.borrow_mut();
        match self.key.and_then(|key| timeouts.get_mut(key)) {
            Some(waiting) => waiting.waker.clone_from(context.waker()),
            None => self.key = Some(timeouts.insert(WaitingTask { at: self.at, waker: context.waker().clone() })),
        }
        Poll::Pending
    }
}

impl Drop for Timeout {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // Bound to a variable first: dropping a waker may drop a task, which may have timeouts of its own.
            let gone = self.timer.timeouts.borrow_mut().try_remove(key);
            drop(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_never_early_and_can_start_again() {
        let timer = CoarseTimer::new();
        let context = Context::from_waker(Waker::noop());
        let mut timeout = timer.timeout(Duration::from_millis(120));
        for now in 0..=4 {
            timer.advance(now);
            assert!(timeout.poll(&context).is_pending(), "{now}");
        }
        timer.advance(5);
        assert!(timeout.poll(&context).is_ready());
        timeout.set(Duration::from_millis(50));
        assert!(timeout.poll(&context).is_pending());
        timer.advance(8);
        assert!(timeout.poll(&context).is_ready());
        assert_eq!(timer.timeouts.borrow().len(), 1);
        drop(timeout);
        assert!(timer.timeouts.borrow().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_machine_is_suspended_hardly_any_time_passes() {
        let timer = CoarseTimer::new();
        let mut run = pin!(Rc::clone(&timer).run());
        assert_eq!(tokio::time::timeout(Duration::from_secs(1), run.as_mut()).await.ok(), None);
        let before = timer.now();
        assert!((19..=21).contains(&before), "{before}");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(tokio::time::timeout(TICK, run.as_mut()).await.ok(), None);
        let passed = timer.now() - before;
        assert!((TICKS_AT_ONCE..=TICKS_AT_ONCE + 1).contains(&passed), "{passed}");
    }

    #[test]
    fn zero_is_no_limit() {
        let timer = CoarseTimer::new();
        let mut timeout = timer.timeout(Duration::ZERO);
        timer.advance(u64::MAX - 1);
        assert!(timeout.poll(&Context::from_waker(Waker::noop())).is_pending());
    }
}
