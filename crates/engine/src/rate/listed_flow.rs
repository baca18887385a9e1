//! `ListedFlow`: a flow whose rate several instances may want, with its demand here (RL-6).

use std::collections::BTreeMap;

use super::part_clock::PartClock;
use super::parts::RatePart;
use super::rate_limit::{OverRate, RateLimit};
use super::shared_stamps::{LOOK_PERIOD, RatePassage, RateTicket};
use crate::time::{Instant, Nanos, SECOND};

/// The stamp of a flow by a clock of its own, and what is needed to know its demand.
#[derive(Debug, Clone)]
pub(super) struct ListedFlow {
    pub(super) clock: PartClock,
    /// The stamp of the flow, by the clock of its part.
    stamp: Instant,
    /// Whether some instance has published its demand. Until then it has an equal part.
    pub(super) is_published: bool,
    demand: Demand,
    queue: RateQueue,
}

/// The requests that wait for their time, in their order, and how far they have moved up.
///
/// A request that leaves keeps its place until nobody waits before it: only those behind it may have its part of the rate. If they did not, nobody
/// would, and the part would be lost.
#[derive(Debug, Clone, Default)]
struct RateQueue {
    /// By their numbers; with what they give back, if they have left.
    waiting: BTreeMap<u64, Option<Nanos>>,
    next: u64,
    moved_up: Nanos,
}

/// The place of a request among those of its flow that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QueuePlace {
    number: u64,
    /// How far others had moved up before it came.
    moved_up: Nanos,
}

/// What arrives of a flow, averaged over the last seconds.
#[derive(Debug, Clone, Copy)]
struct Demand {
    since: Instant,
    /// The cost of what has arrived, where a second ago counts less than now; and when that was reckoned.
    average: f64,
    reckoned: Instant,
    /// What has arrived since then.
    arrived: i64,
    /// When the last request arrived, if any has.
    latest: Option<Instant>,
}

/// A flow of which nothing arrives is kept for this long, or for twice the time that its demand is averaged over.
const KEPT: Nanos = 10 * SECOND;
/// Demand is averaged over the time in which the rate gives this much, but over at least a second and at most a minute.
const AVERAGED_COST: u64 = 8;
/// A rate that is wanted exactly once is a demand of this.
const DEMAND_UNIT: f64 = 65_536.0;

// === impl ListedFlow ===

impl ListedFlow {
    /// A flow whose clock and stamp were these so far.
    pub(super) fn new(clock: PartClock, stamp: Option<Instant>, now: Instant) -> Self {
        let demand = Demand { since: now, average: 0.0, reckoned: now, arrived: 0, latest: None };
        Self {
            clock,
            stamp: stamp.unwrap_or_else(|| clock.at(now)),
            is_published: false,
            demand,
            queue: RateQueue::default(),
        }
    }

    /// A request asks to pass. `equal` is the part to expect as long as others do not know of the demand here.
    pub(super) fn take(
        &mut self,
        limit: &RateLimit,
        cost: u64,
        equal: RatePart,
        now: Instant,
        latest: Instant,
    ) -> Result<RatePassage, OverRate> {
        self.demand.note(i64::try_from(cost).unwrap_or(i64::MAX));
        self.demand.latest = Some(now);
        let shown = self.clock.at(now);
        let from = self.stamp.max(shown);
        let (at, stamp) = limit.in_part(self.clock.part()).pass(Some(from), shown, cost);
        if at <= shown {
            self.stamp = stamp;
            return Ok(RatePassage { at: now, ticket: None });
        }
        let expected = if self.clock.part().is_none() { equal } else { self.clock.part() };
        let conforms_at = self.clock.when(at, expected, now);
        if conforms_at > latest.max(now) {
            return Err(OverRate { conforms_at });
        }
        self.stamp = stamp;
        let ticket = RateTicket { from, span: limit.span_of(cost), place: Some(self.queue.join()) };
        Ok(RatePassage { at: conforms_at.min(now + LOOK_PERIOD), ticket: Some(ticket) })
    }

    /// The stamp by which a request that waits may pass, with what those before it have given back.
    pub(super) fn from(&self, ticket: &RateTicket) -> Instant {
        ticket.from + ticket.place.map_or(0, |place| place.moved_up - self.queue.moved_up)
    }

    /// A request has waited, and passes.
    pub(super) fn end_wait(&mut self, place: QueuePlace) {
        let given_back = self.queue.end(place);
        self.stamp = self.stamp + -given_back;
    }

    /// A request has waited, and does not pass.
    pub(super) fn leave_wait(&mut self, place: QueuePlace, span: Nanos) {
        let given_back = self.queue.leave(place, span);
        self.stamp = self.stamp + -given_back;
    }

    pub(super) fn correct(&mut self, limit: &RateLimit, more: i64, now: Instant) {
        let span = limit.span_of(more.unsigned_abs());
        self.stamp = if more < 0 { self.stamp + -span } else { self.stamp.max(self.clock.at(now)) + span };
        self.demand.note(more);
    }

    pub(super) fn stamp(&self) -> Instant {
        self.stamp
    }

    /// The demand for the rate: what arrives in a second and what waits, in 65,536ths of what the rate gives in a second; 0 if nothing has
    /// arrived lately.
    pub(super) fn demand(&mut self, limit: &RateLimit, now: Instant) -> u64 {
        let averaged = limit.span_of(AVERAGED_COST).clamp(SECOND, 60 * SECOND);
        let is_recent = self.demand.latest.is_some_and(|latest| now - latest <= KEPT.max(2 * averaged));
        if self.queue.is_empty() && !is_recent {
            return 0;
        }
        let arrives = self.demand.in_a_second(averaged, now) / limit.in_a_second();
        let burst_time = limit.in_part(self.clock.part()).burst_time();
        let owed = if self.queue.is_empty() { 0 } else { (self.stamp - self.clock.at(now) - burst_time).max(0) };
        #[expect(clippy::cast_precision_loss, reason = "a time")]
        let waits = owed as f64 / SECOND as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast stays within bounds")]
        let demand = ((arrives + waits) * DEMAND_UNIT) as u64;
        demand.max(1)
    }

    /// Whether it can be forgotten without changing anything.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        self.queue.is_empty() && self.stamp <= self.clock.at(now)
    }
}

// === impl RateQueue ===

impl RateQueue {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn join(&mut self) -> QueuePlace {
        let number = self.next;
        self.next += 1;
        self.waiting.insert(number, None);
        QueuePlace { number, moved_up: self.moved_up }
    }

    /// A request passes. Returns what is given back by others that have left.
    fn end(&mut self, place: QueuePlace) -> Nanos {
        self.waiting.remove(&place.number);
        self.move_up()
    }

    /// A request leaves. Returns what is given back.
    fn leave(&mut self, place: QueuePlace, span: Nanos) -> Nanos {
        if let Some(left) = self.waiting.get_mut(&place.number) {
            *left = Some(span);
        }
        self.move_up()
    }

    /// Nobody waits before the first ones that have left any more.
    fn move_up(&mut self) -> Nanos {
        let before = self.moved_up;
        while let Some(first) = self.waiting.first_entry()
            && let Some(span) = *first.get()
        {
            self.moved_up += span;
            first.remove();
        }
        self.moved_up - before
    }
}

// === impl Demand ===

impl Demand {
    fn note(&mut self, cost: i64) {
        self.arrived = self.arrived.saturating_add(cost);
    }

    /// What arrives in a second, averaged over a time; a flow that is new is averaged over the time for which it is there.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    fn in_a_second(&mut self, averaged: Nanos, now: Instant) -> f64 {
        let averaged = averaged as f64;
        let passed = (now - self.reckoned).max(0) as f64 / averaged;
        if passed > 0.0 {
            let kept = (-passed).exp();
            // What arrived a while ago counts less, too.
            self.average = (self.average * kept + self.arrived as f64 * (1.0 - kept) / passed).max(0.0);
            (self.reckoned, self.arrived) = (now, 0);
        }
        let age = (now - self.since).max(SECOND / 4) as f64 / averaged;
        self.average / (averaged / SECOND as f64 * (1.0 - (-age).exp()))
    }
}
