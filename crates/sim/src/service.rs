//! What the requests run on: a service that works on a limited number of them at a time, and degrades beyond that.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use evenkeel_engine::Ticket;
use evenkeel_engine::time::Nanos;

/// The service. Requests beyond its slots wait inside it, first come, first served.
///
/// All requests that it works on go equally fast, so that work is measured on one clock: it runs as fast as time while no
/// request waits inside, and slower the more do.
#[derive(Debug)]
pub(crate) struct Service {
    /// `None`: it works on everything at once.
    slots: Option<u32>,
    degradation: f64,
    in_work: BinaryHeap<Reverse<WorkItem>>,
    backlog: VecDeque<(Ticket, Nanos)>,
    sequence: u64,
    /// The clock of work: the real time of its last update, its reading then, and its speed.
    as_of: Nanos,
    work_clock: Nanos,
    /// What is left of a nanosecond, in parts of [`FULL_SPEED`].
    remainder: u64,
    speed: u64,
}

/// A request in work, ordered by the reading of the clock of work at which it is done.
#[derive(Debug)]
struct WorkItem {
    done_at: Nanos,
    sequence: u64,
    ticket: Ticket,
}

/// The speed at which a nanosecond of work takes a nanosecond.
const FULL_SPEED: u64 = 1 << 20;

// === impl Service ===

impl Service {
    pub(crate) fn new(slots: Option<u32>, degradation: f64) -> Self {
        Self {
            slots,
            degradation,
            in_work: BinaryHeap::new(),
            backlog: VecDeque::new(),
            sequence: 0,
            as_of: 0,
            work_clock: 0,
            remainder: 0,
            speed: FULL_SPEED,
        }
    }

    /// Starts a request with this much work.
    #[inline]
    pub(crate) fn begin(&mut self, now: Nanos, ticket: Ticket, work: Nanos) {
        if self.has_free_slot() {
            self.work_on(now, ticket, work);
        } else {
            self.advance(now);
            self.backlog.push_back((ticket, work));
            self.set_speed();
        }
    }

    /// When the next request is done, if nothing else happens before.
    #[inline]
    pub(crate) fn next_end(&self) -> Option<Nanos> {
        let Reverse(next) = self.in_work.peek()?;
        let work = (next.done_at - self.work_clock).max(0);
        if self.speed == FULL_SPEED {
            return Some(self.as_of + work);
        }
        let parts = i128::from(work) * i128::from(FULL_SPEED) - i128::from(self.remainder);
        let span = parts.div_euclid(i128::from(self.speed)) + i128::from(parts.rem_euclid(i128::from(self.speed)) > 0);
        Some(self.as_of.saturating_add(Nanos::try_from(span.max(0)).unwrap_or(Nanos::MAX)))
    }

    /// The request that is done by now, which [`next_end`](Self::next_end) has announced.
    #[inline]
    pub(crate) fn end_next(&mut self, now: Nanos) -> Option<Ticket> {
        let Reverse(WorkItem { ticket, .. }) = self.in_work.pop()?;
        if !self.backlog.is_empty() {
            self.advance(now);
            self.fill(now);
        }
        Some(ticket)
    }

    /// Sets how many requests it works on at a time. Requests in work go on.
    pub(crate) fn set_slots(&mut self, now: Nanos, slots: Option<u32>) {
        self.advance(now);
        self.slots = slots;
        self.fill(now);
    }

    fn has_free_slot(&self) -> bool {
        self.slots.is_none_or(|slots| self.in_work.len() < slots as usize)
    }

    fn fill(&mut self, now: Nanos) {
        while self.has_free_slot()
            && let Some((ticket, work)) = self.backlog.pop_front()
        {
            self.work_on(now, ticket, work);
        }
        self.set_speed();
    }

    #[inline]
    fn work_on(&mut self, now: Nanos, ticket: Ticket, work: Nanos) {
        self.advance(now);
        self.sequence += 1;
        let done_at = self.work_clock.saturating_add(work.max(0));
        self.in_work.push(Reverse(WorkItem { done_at, sequence: self.sequence, ticket }));
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "less than a nanosecond is left over")]
    fn advance(&mut self, now: Nanos) {
        let span = (now - self.as_of).max(0);
        if self.speed == FULL_SPEED {
            self.work_clock += span;
        } else {
            let parts = u128::from(span.unsigned_abs()) * u128::from(self.speed) + u128::from(self.remainder);
            self.work_clock += Nanos::try_from(parts / u128::from(FULL_SPEED)).unwrap_or(Nanos::MAX);
            self.remainder = (parts % u128::from(FULL_SPEED)) as u64;
        }
        self.as_of = now;
    }

    /// Throughput falls as 1 / (1 + degradation × excess / slots).
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a ratio from 0 to 1, in fixed point"
    )]
    fn set_speed(&mut self) {
        let slots = f64::from(self.slots.unwrap_or(1).max(1));
        let slowness = 1.0 + self.degradation * self.backlog.len() as f64 / slots;
        self.speed = ((FULL_SPEED as f64 / slowness) as u64).clamp(1, FULL_SPEED);
    }
}

// === impl WorkItem ===

impl Ord for WorkItem {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.done_at, self.sequence).cmp(&(other.done_at, other.sequence))
    }
}

impl PartialOrd for WorkItem {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WorkItem {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for WorkItem {}
