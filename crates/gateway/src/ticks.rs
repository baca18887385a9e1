//! Time-outs of one worker, looked at some times a second instead of with a timer for each.
//!
//! Nearly no time-out ever comes true, so they have to be cheap to set and to take back. Here that is a few instructions
//! on memory of the worker's own; for that they may be late by three ticks. They are never early.
//!
//! It is the time of the worker: while nothing at all runs, because the machine stands still, hardly any passes. So whatever
//! came meanwhile is read before anybody is given up for being silent.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use http::HeaderValue;
use slab::Slab;

/// How often the time-outs are looked at.
const TICK: Duration = Duration::from_millis(50);
/// By how many ticks the clock goes on at a time, at most.
const TICKS_AT_ONCE: u64 = 2;

/// The clock of a worker.
#[derive(Debug)]
pub(crate) struct Ticks {
    now: Cell<u64>,
    alarms: RefCell<Slab<Waiting>>,
    date: RefCell<HeaderValue>,
}

/// Somebody to be woken.
#[derive(Debug)]
struct Waiting {
    at: u64,
    waker: Waker,
}

/// A time-out. It costs next to nothing until it is waited for.
#[derive(Debug)]
pub(crate) struct Alarm {
    ticks: Rc<Ticks>,
    at: u64,
    key: Option<usize>,
}

/// The time was over first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Elapsed;

// === impl Ticks ===

impl Ticks {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self { now: Cell::new(0), alarms: RefCell::default(), date: RefCell::new(date()) })
    }

    /// Goes on until it is dropped.
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

    /// Wakes those whose time is over.
    pub(crate) fn advance(&self, now: u64) {
        const TICKS_A_SECOND: u64 = 20;
        if now / TICKS_A_SECOND != self.now.get() / TICKS_A_SECOND {
            *self.date.borrow_mut() = date();
        }
        self.now.set(now);
        self.wake(|waiting| waiting.at <= now);
    }

    /// Wakes everybody, to look at something else that has changed.
    pub(crate) fn wake_all(&self) {
        self.wake(|_| true);
    }

    fn wake(&self, which: impl Fn(&Waiting) -> bool) {
        // Whoever is woken must find the list free.
        let alarms = self.alarms.borrow();
        let due = alarms.iter().filter(|(_, waiting)| which(waiting)).map(|(_, waiting)| waiting.waker.clone());
        let due: Vec<Waker> = due.collect();
        drop(alarms);
        due.into_iter().for_each(Waker::wake);
    }

    /// The time that it is, to compare with other times of this clock only.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// How many ticks that is at least.
    pub(crate) fn count(duration: Duration) -> u64 {
        u64::try_from(duration.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u64::MAX)
    }

    /// How long so many ticks take.
    pub(crate) fn duration(ticks: u64) -> Duration {
        TICK.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }

    /// The time of day, as the header `Date` has it.
    pub(crate) fn date(&self) -> HeaderValue {
        self.date.borrow().clone()
    }

    /// A time-out from now on. Zero means never.
    pub(crate) fn alarm(self: &Rc<Self>, duration: Duration) -> Alarm {
        let mut alarm = Alarm { ticks: Rc::clone(self), at: u64::MAX, key: None };
        alarm.set(duration);
        alarm
    }

    /// What the future gives, unless that takes longer. Zero means that it may take as long as it likes.
    pub(crate) async fn limit<F: Future>(self: &Rc<Self>, duration: Duration, future: F) -> Result<F::Output, Elapsed> {
        self.alarm(duration).limit(future).await
    }
}

fn date() -> HeaderValue {
    HeaderValue::try_from(httpdate::fmt_http_date(SystemTime::now())).unwrap_or_else(|_| HeaderValue::from_static(""))
}

// === impl Alarm ===

impl Alarm {
    /// The time that it is by its clock.
    pub(crate) fn now(&self) -> u64 {
        self.ticks.now()
    }

    /// Begins again. Zero means never.
    pub(crate) fn set(&mut self, duration: Duration) {
        self.set_from(self.now(), duration);
    }

    /// Begins again, as if at this time of its clock. Zero means never.
    pub(crate) fn set_from(&mut self, begin: u64, duration: Duration) {
        let ticks = if duration.is_zero() { u64::MAX } else { Ticks::count(duration) };
        // The clock may be behind by that much.
        self.at = begin.saturating_add(ticks).saturating_add(TICKS_AT_ONCE);
        if let Some(key) = self.key
            && let Some(waiting) = self.ticks.alarms.borrow_mut().get_mut(key)
        {
            waiting.at = self.at;
        }
    }

    /// What the future gives, unless the time is over first.
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
        if self.at <= self.ticks.now() {
            return Poll::Ready(());
        }
        if self.at == u64::MAX {
            return Poll::Pending;
        }
        let mut alarms = self.ticks.alarms.borrow_mut();
        match self.key.and_then(|key| alarms.get_mut(key)) {
            Some(waiting) => waiting.waker.clone_from(context.waker()),
            None => self.key = Some(alarms.insert(Waiting { at: self.at, waker: context.waker().clone() })),
        }
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            // Bound first: dropping a waker may drop a task, which may have alarms of its own.
            let gone = self.ticks.alarms.borrow_mut().try_remove(key);
            drop(gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_never_early_and_can_begin_again() {
        let ticks = Ticks::new();
        let context = Context::from_waker(Waker::noop());
        let mut alarm = ticks.alarm(Duration::from_millis(120));
        for now in 0..=4 {
            ticks.advance(now);
            assert!(alarm.poll(&context).is_pending(), "{now}");
        }
        ticks.advance(5);
        assert!(alarm.poll(&context).is_ready());
        alarm.set(Duration::from_millis(50));
        assert!(alarm.poll(&context).is_pending());
        ticks.advance(8);
        assert!(alarm.poll(&context).is_ready());
        assert_eq!(ticks.alarms.borrow().len(), 1);
        drop(alarm);
        assert!(ticks.alarms.borrow().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn while_the_machine_stands_still_hardly_any_time_passes() {
        let ticks = Ticks::new();
        let mut run = pin!(Rc::clone(&ticks).run());
        assert_eq!(tokio::time::timeout(Duration::from_secs(1), run.as_mut()).await.ok(), None);
        let before = ticks.now();
        assert!((19..=21).contains(&before), "{before}");
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(tokio::time::timeout(TICK, run.as_mut()).await.ok(), None);
        let passed = ticks.now() - before;
        assert!((TICKS_AT_ONCE..=TICKS_AT_ONCE + 1).contains(&passed), "{passed}");
    }

    #[test]
    fn zero_is_no_limit() {
        let ticks = Ticks::new();
        let mut alarm = ticks.alarm(Duration::ZERO);
        ticks.advance(u64::MAX - 1);
        assert!(alarm.poll(&Context::from_waker(Waker::noop())).is_pending());
    }
}
