//! `Service`: the service that requests run on. It works on a limited number of them at a time, and degrades beyond that.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

use evenkeel_engine::Ticket;
use evenkeel_engine::time::{MILLISECOND, Nanos};

/// How fast a service is, by how many requests are inside.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct ServiceCurve {
    /// How many requests the service really works on at a time; `None` for no limit of its own.
    pub slots: Option<u32>,
    /// How much slower the service gets by the requests beyond its slots: its throughput falls as
    /// 1 / (1 + degradation × excess / slots).
    pub degradation: f64,
    /// How requests beyond the slots are served.
    pub sharing: Sharing,
    /// How much slower a request gets by each other one inside: 1 / (1 + contention × (n − 1) + coherence × n × (n − 1)), as the
    /// universal scalability law has it. Both are 0 for a service that has slots only.
    pub contention: f64,
    /// See `contention`.
    pub coherence: f64,
    /// With so many requests inside, further ones fail at once; `None`: never.
    pub refuses_above: Option<u32>,
}

/// How requests beyond the slots of a service are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Sharing {
    /// Requests wait inside the service, first come, first served.
    #[default]
    Queue,
    /// All requests inside share the slots, and each gets slower.
    Processor,
}

/// A request, as the service sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task {
    pub(crate) ticket: Ticket,
    pub(crate) work: Nanos,
    /// Time that it takes elsewhere after its work, without a slot.
    pub(crate) delay: Nanos,
}

/// A request that has left the service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    pub(crate) ticket: Ticket,
    pub(crate) is_good: bool,
}

/// The service.
///
/// All requests that it works on go equally fast, so that work is measured on one clock: it runs as fast as time while no
/// more requests than slots are inside, and slower the more there are.
#[derive(Debug)]
pub(crate) struct Service {
    curve: ServiceCurve,
    /// Whether all requests fail that begin now.
    is_failing: bool,
    /// The requests of other servers that it works on.
    others: u32,
    in_work: BinaryHeap<Reverse<WorkItem>>,
    backlog: VecDeque<Task>,
    /// Requests whose work is done, and those that fail, by the time at which they leave.
    leaving: BinaryHeap<Reverse<Leaving>>,
    sequence: u64,
    /// The clock of work: at which time it showed what, and how fast it runs.
    as_of: Nanos,
    work_clock: Nanos,
    /// The remaining part of a nanosecond, in parts of [`FULL_SPEED`].
    remainder: u64,
    speed: u64,
}

/// A request that is worked on, by the time of the clock of work at which it is done.
#[derive(Debug)]
struct WorkItem {
    done_at: Nanos,
    sequence: u64,
    ticket: Ticket,
    delay: Nanos,
}

/// A request that leaves at a time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Leaving {
    at: Nanos,
    sequence: u64,
    ticket: Ticket,
    is_good: bool,
}

/// A request that fails takes this long.
const FAILURE_TIME: Nanos = MILLISECOND;

/// The speed at which a nanosecond of work takes a nanosecond.
const FULL_SPEED: u64 = 1 << 20;

// === impl Service ===

impl Service {
    pub(crate) fn new(curve: ServiceCurve) -> Self {
        Self {
            curve,
            is_failing: false,
            others: 0,
            in_work: BinaryHeap::new(),
            backlog: VecDeque::new(),
            leaving: BinaryHeap::new(),
            sequence: 0,
            as_of: 0,
            work_clock: 0,
            remainder: 0,
            speed: FULL_SPEED,
        }
    }

    /// A request starts.
    #[inline]
    pub(crate) fn begin(&mut self, now: Nanos, task: Task) {
        let is_refused = self.curve.refuses_above.is_some_and(|most| self.inside() >= most as usize);
        if is_refused || self.is_failing {
            self.leave(now + FAILURE_TIME, task.ticket, false);
        } else if self.has_free_slot() {
            self.work_on(now, task);
            self.set_speed();
        } else {
            self.advance(now);
            self.backlog.push_back(task);
            self.set_speed();
        }
    }

    /// When the next request is done or leaves, if nothing else happens before.
    #[inline]
    pub(crate) fn next_end(&self) -> Option<Nanos> {
        let leaving = self.leaving.peek().map(|Reverse(next)| next.at);
        leaving.into_iter().chain(self.next_work_end()).min()
    }

    /// The request that leaves by now, which [`next_end`](Self::next_end) has told of. `None` if its work is done, and it goes on
    /// elsewhere.
    #[inline]
    pub(crate) fn end_next(&mut self, now: Nanos) -> Option<Done> {
        if self.leaving.peek().is_some_and(|Reverse(next)| next.at <= now) {
            let Reverse(Leaving { ticket, is_good, .. }) = self.leaving.pop()?;
            return Some(Done { ticket, is_good });
        }
        let Reverse(WorkItem { ticket, delay, .. }) = self.in_work.pop()?;
        if self.speed != FULL_SPEED || !self.backlog.is_empty() {
            self.advance(now);
            self.fill(now);
        }
        if delay > 0 {
            self.leave(now + delay, ticket, true);
            return None;
        }
        Some(Done { ticket, is_good: true })
    }

    /// It works on so many at a time from now on. Requests that it has begun go on.
    pub(crate) fn set_slots(&mut self, now: Nanos, slots: Option<u32>) {
        self.advance(now);
        self.curve.slots = slots;
        self.fill(now);
    }

    /// How many requests of this server it works on.
    pub(crate) fn in_work(&self) -> u32 {
        u32::try_from(self.in_work.len()).unwrap_or(u32::MAX)
    }

    /// It works on so many requests of other servers from now on.
    pub(crate) fn set_others(&mut self, now: Nanos, others: u32) {
        if others != self.others {
            self.advance(now);
            self.others = others;
            self.set_speed();
        }
    }

    /// From now on, all requests that begin fail, or none.
    pub(crate) fn set_failing(&mut self, is_failing: bool) {
        self.is_failing = is_failing;
    }

    fn inside(&self) -> usize {
        self.in_work.len() + self.backlog.len() + self.leaving.len() + self.others as usize
    }

    fn next_work_end(&self) -> Option<Nanos> {
        let Reverse(next) = self.in_work.peek()?;
        let work = (next.done_at - self.work_clock).max(0);
        if self.speed == FULL_SPEED {
            return Some(self.as_of + work);
        }
        let parts = i128::from(work) * i128::from(FULL_SPEED) - i128::from(self.remainder);
        let span = parts.div_euclid(i128::from(self.speed)) + i128::from(parts.rem_euclid(i128::from(self.speed)) > 0);
        Some(self.as_of.saturating_add(Nanos::try_from(span.max(0)).unwrap_or(Nanos::MAX)))
    }

    fn leave(&mut self, at: Nanos, ticket: Ticket, is_good: bool) {
        self.sequence += 1;
        self.leaving.push(Reverse(Leaving { at, sequence: self.sequence, ticket, is_good }));
    }

    fn has_free_slot(&self) -> bool {
        match self.curve.sharing {
            Sharing::Processor => true,
            Sharing::Queue => self.curve.slots.is_none_or(|slots| self.in_work.len() < slots as usize),
        }
    }

    fn fill(&mut self, now: Nanos) {
        while self.has_free_slot()
            && let Some(task) = self.backlog.pop_front()
        {
            self.work_on(now, task);
        }
        self.set_speed();
    }

    #[inline]
    fn work_on(&mut self, now: Nanos, task: Task) {
        let Task { ticket, work, delay } = task;
        self.advance(now);
        self.sequence += 1;
        let done_at = self.work_clock.saturating_add(work.max(0));
        self.in_work.push(Reverse(WorkItem { done_at, sequence: self.sequence, ticket, delay }));
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

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a ratio from 0 to 1, in fixed point"
    )]
    fn set_speed(&mut self) {
        self.speed = ((FULL_SPEED as f64 / self.slowness()) as u64).clamp(1, FULL_SPEED);
    }

    /// How many times as long a request takes that is worked on now.
    #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^53 requests")]
    fn slowness(&self) -> f64 {
        let ServiceCurve { slots, degradation, sharing, contention, coherence, .. } = self.curve;
        let working = self.in_work.len() as f64 + f64::from(self.others);
        let others = (working - 1.0).max(0.0);
        let scaling = 1.0 + contention * others + coherence * working * others;
        let Some(slots) = slots else { return scaling };
        let slots = f64::from(slots.max(1));
        let (excess, crowding) = match sharing {
            Sharing::Queue => (self.backlog.len() as f64, 1.0),
            Sharing::Processor => ((working - slots).max(0.0), (working / slots).max(1.0)),
        };
        scaling * crowding * (1.0 + degradation * excess / slots)
    }
}

// === impl ServiceCurve ===

impl Default for ServiceCurve {
    /// A service without a limit of its own.
    fn default() -> Self {
        Self {
            slots: None,
            degradation: 0.0,
            sharing: Sharing::default(),
            contention: 0.0,
            coherence: 0.0,
            refuses_above: None,
        }
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
