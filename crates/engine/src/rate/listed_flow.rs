//! `ListedFlow`: a flow whose rate several instances may want, with its demand here (RL-6).

use super::part_clock::PartClock;
use super::parts::RatePart;
use super::rate_limit::{OverRate, RateLimit};
use super::shared_stamps::{RatePassage, RateTicket};
use crate::time::{Instant, Nanos, SECOND};

/// The stamp of a flow by a clock of its own, and what is needed to know its demand.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListedFlow {
    pub(super) clock: PartClock,
    /// The stamp of the flow, by the clock of its part.
    stamp: Instant,
    /// Whether some instance has published its demand. Until then it has an equal part.
    pub(super) is_published: bool,
    demand: Demand,
    /// How many requests wait for their time.
    waiting: u32,
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

/// A request that waits looks at the clock of its flow again after this, because the part may have grown.
const LOOK_PERIOD: Nanos = SECOND / 5;
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
        Self { clock, stamp: stamp.unwrap_or_else(|| clock.at(now)), is_published: false, demand, waiting: 0 }
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
        self.waiting = self.waiting.saturating_add(1);
        let ticket = RateTicket { from, span: limit.span_of(cost), is_counted: true };
        Ok(RatePassage { at: conforms_at.min(now + LOOK_PERIOD), ticket: Some(ticket) })
    }

    /// When a request that waits should look again; `None`: it conforms.
    pub(super) fn look_again(
        clock: &PartClock,
        limit: &RateLimit,
        ticket: &RateTicket,
        now: Instant,
    ) -> Option<Instant> {
        let burst_time = limit.in_part(clock.part()).burst_time();
        let at = ticket.from + (ticket.span.min(burst_time) - burst_time);
        (at > clock.at(now)).then(|| clock.when(at, clock.part(), now).min(now + LOOK_PERIOD))
    }

    pub(super) fn end_wait(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
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
        if self.waiting == 0 && !is_recent {
            return 0;
        }
        let arrives = self.demand.in_a_second(averaged, now) / limit.in_a_second();
        let burst_time = limit.in_part(self.clock.part()).burst_time();
        let owed = if self.waiting > 0 { (self.stamp - self.clock.at(now) - burst_time).max(0) } else { 0 };
        #[expect(clippy::cast_precision_loss, reason = "a time")]
        let waits = owed as f64 / SECOND as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a cast stays within bounds")]
        let demand = ((arrives + waits) * DEMAND_UNIT) as u64;
        demand.max(1)
    }

    /// Whether it can be forgotten without changing anything.
    pub(super) fn is_at_rest(&self, now: Instant) -> bool {
        self.waiting == 0 && self.stamp <= self.clock.at(now)
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
