//! `SharedStamps`: the stamps of flows whose rates other instances may share (RL-6).

use std::collections::BTreeMap;

use super::flow_stamps::{FlowStamps, Standing};
use super::listed_flow::{ListedFlow, QueuePlace};
use super::part_clock::PartClock;
use super::parts::RatePart;
use super::rate_limit::{OverRate, RateLimit};
use crate::time::{Instant, Nanos, SECOND};

/// The stamps of flows, here and perhaps on other instances. Without others it is a [`FlowStamps`].
///
/// With others, a flow has an equal part of its rate at first. When that is too little for it, it is **listed**: its demand is measured, and
/// [`demands`](Self::demands) tells it, for the others to know. What all tell is divided by [`rate_parts`](super::rate_parts), and comes
/// back with [`set_parts`](Self::set_parts). A flow that nobody lists needs none of that, and so millions of them cost nothing.
#[derive(Debug, Clone)]
pub struct SharedStamps {
    stamps: FlowStamps,
    /// `None` without other instances.
    fleet: Option<Box<ListedFlows>>,
}

/// When a request may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RatePassage {
    /// The request may pass at this time, and not before.
    pub at: Instant,
    /// If it is set, whoever waits has to [look again](SharedStamps::look_again) then.
    pub ticket: Option<RateTicket>,
}

/// The place of a request that waits for its part of a rate which others share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateTicket {
    /// The stamp that it found, by the clock of its flow.
    pub(super) from: Instant,
    /// What it takes of the rate.
    pub(super) span: Nanos,
    /// Its place among those of its flow that wait, if the flow is listed.
    pub(super) place: Option<QueuePlace>,
}

/// The flows whose rates are divided by demand, and the clock of all others.
#[derive(Debug, Clone)]
struct ListedFlows {
    /// The clock of flows that are not listed: it runs at an equal part.
    clock: PartClock,
    equal: RatePart,
    listed: BTreeMap<u64, ListedFlow>,
    /// Whether a flow should have been listed for which there was no place.
    is_crowded: bool,
    /// The rate that was asked for last; all flows have the same.
    limit: Option<RateLimit>,
}

/// How many flows are listed at most, 150 bytes each and as much as their waiting requests need. Others have an equal part.
const LISTED_MAX: usize = 128;
/// A request that waits looks at the clock of its flow again after this, because the part may have grown.
pub(super) const LOOK_PERIOD: Nanos = SECOND / 5;

// === impl SharedStamps ===

impl SharedStamps {
    /// Remembers so many flows at most: see [`FlowStamps::new`].
    pub fn new(flows_max: usize) -> Self {
        Self { stamps: FlowStamps::new(flows_max), fleet: None }
    }

    /// A request of a flow asks to pass, and would wait until `latest` for that. Tells when it may; then the rate has been taken.
    #[inline]
    pub fn take(
        &mut self,
        limit: &RateLimit,
        flow: u64,
        cost: u64,
        now: Instant,
        latest: Instant,
    ) -> Result<RatePassage, OverRate> {
        match &mut self.fleet {
            None => self.stamps.take(limit, flow, cost, now, latest).map(|at| RatePassage { at, ticket: None }),
            Some(fleet) => fleet.take(&mut self.stamps, limit, flow, cost, now, latest),
        }
    }

    /// When a request that waits should look again; `None`: it may pass. The part of its flow may have changed since it was told.
    pub fn look_again(&self, limit: &RateLimit, flow: u64, ticket: &RateTicket, now: Instant) -> Option<Instant> {
        let fleet = self.fleet.as_ref()?;
        let (clock, from) = match fleet.listed.get(&flow) {
            Some(listed) => (&listed.clock, listed.from(ticket)),
            None => (&fleet.clock, ticket.from),
        };
        let burst_time = limit.in_part(clock.part()).burst_time();
        let at = from + (ticket.span.min(burst_time) - burst_time);
        (at > clock.at(now)).then(|| clock.when(at, clock.part(), now).min(now + LOOK_PERIOD))
    }

    /// A request with that ticket waits no longer: it passes.
    pub fn end_wait(&mut self, flow: u64, ticket: &RateTicket) {
        if let Some((listed, place)) = self.place(flow, ticket) {
            listed.end_wait(place);
        }
    }

    /// A request with that ticket waits no longer and does not pass, so it gives back what it took. Those behind it move up.
    pub fn leave_wait(&mut self, limit: &RateLimit, flow: u64, cost: u64, ticket: &RateTicket, now: Instant) {
        match self.place(flow, ticket) {
            Some((listed, place)) => listed.leave_wait(place, ticket.span),
            None => self.correct(limit, flow, -i64::try_from(cost).unwrap_or(i64::MAX), now),
        }
    }

    fn place(&mut self, flow: u64, ticket: &RateTicket) -> Option<(&mut ListedFlow, QueuePlace)> {
        Some((self.fleet.as_mut()?.listed.get_mut(&flow)?, ticket.place?))
    }

    /// What a request of a flow took turns out to be too little by that much, or too much if it is below zero: see
    /// [`FlowStamps::correct`].
    pub fn correct(&mut self, limit: &RateLimit, flow: u64, more: i64, now: Instant) {
        match &mut self.fleet {
            None => self.stamps.correct(limit, flow, more, now),
            Some(fleet) => match fleet.listed.get_mut(&flow) {
                Some(listed) => listed.correct(limit, more, now),
                None => self.stamps.correct(limit, flow, more, fleet.clock.at(now)),
            },
        }
    }

    /// How a flow stands with its rate, or with the part of it that it has here.
    pub fn standing(&self, limit: &RateLimit, flow: u64, now: Instant) -> Standing {
        let Some(fleet) = &self.fleet else { return self.stamps.standing(limit, flow, now) };
        let (clock, stamp) = match fleet.listed.get(&flow) {
            Some(listed) => (&listed.clock, Some(listed.stamp())),
            None => (&fleet.clock, self.stamps.stamp(flow)),
        };
        let (shown, part) = (clock.at(now), limit.in_part(clock.part()));
        let expected = if clock.part().is_none() { fleet.equal } else { clock.part() };
        let rests_in = stamp.map_or(0, |stamp| clock.when(stamp, expected, now) - now);
        Standing { left: part.left(stamp, shown), rests_in }
    }

    /// When a request of that cost would pass if it came now. Nothing is taken.
    pub fn would_pass(&self, limit: &RateLimit, flow: u64, cost: u64, now: Instant) -> Instant {
        let Some(fleet) = &self.fleet else { return limit.pass(self.stamps.stamp(flow), now, cost).0 };
        let (clock, stamp) = match fleet.listed.get(&flow) {
            Some(listed) => (&listed.clock, Some(listed.stamp())),
            None => (&fleet.clock, self.stamps.stamp(flow)),
        };
        let (shown, part) = (clock.at(now), clock.part());
        let expected = if part.is_none() { fleet.equal } else { part };
        clock.when(limit.in_part(part).pass(stamp, shown, cost).0, expected, now)
    }

    /// The part of its rate that a flow has here.
    pub fn part(&self, flow: u64) -> RatePart {
        let clock = |fleet: &ListedFlows| fleet.listed.get(&flow).map_or(fleet.clock, |listed| listed.clock).part();
        self.fleet.as_deref().map_or(RatePart::WHOLE, clock)
    }

    /// So many instances, this one among them, have requests of the flows.
    pub fn share(&mut self, instances: usize, now: Instant) {
        let equal = RatePart::one_of(instances);
        let fleet = self.fleet.get_or_insert_with(|| {
            let clock = PartClock::new(now);
            Box::new(ListedFlows { clock, equal, listed: BTreeMap::new(), is_crowded: false, limit: None })
        });
        fleet.equal = equal;
        fleet.clock.set(equal, now);
        for listed in fleet.listed.values_mut().filter(|listed| !listed.is_published) {
            listed.clock.set(equal, now);
        }
    }

    /// The parts of all flows of which some instance has published a demand, in any order. All others have an equal part.
    pub fn set_parts(&mut self, parts: &BTreeMap<u64, RatePart>, now: Instant) {
        let Some(fleet) = &mut self.fleet else { return };
        let equal = fleet.equal;
        for (flow, listed) in &mut fleet.listed {
            listed.is_published = parts.contains_key(flow);
            listed.clock.set(parts.get(flow).copied().unwrap_or(equal), now);
        }
        for (flow, part) in parts {
            // Others list it: what comes of it here has to be measured.
            if let Some(listed) = fleet.list(&mut self.stamps, *flow, now) {
                listed.is_published = true;
                listed.clock.set(*part, now);
            }
        }
    }

    /// The other instances cannot be heard: no flow has more than an equal part.
    pub fn keep_apart(&mut self, now: Instant) {
        let Some(fleet) = &mut self.fleet else { return };
        let equal = fleet.equal;
        for listed in fleet.listed.values_mut() {
            listed.clock.set(listed.clock.part().min(equal), now);
        }
    }

    /// Adds the demands of the flows that are listed here, and forgets those of which nothing comes any more. Tells whether these are all
    /// flows for which an equal part is too little.
    pub fn demands(&mut self, now: Instant, demands: &mut Vec<(u64, u64)>) -> bool {
        let Some(fleet) = &mut self.fleet else { return true };
        let Some(limit) = fleet.limit else { return true };
        fleet.listed.retain(|flow, listed| {
            let demand = listed.demand(&limit, now);
            if demand > 0 {
                demands.push((*flow, demand));
            }
            // A flow that others list is kept to be measured.
            demand > 0 || listed.is_published || !listed.is_at_rest(now)
        });
        !std::mem::take(&mut fleet.is_crowded)
    }
}

// === impl ListedFlows ===

impl ListedFlows {
    fn take(
        &mut self,
        stamps: &mut FlowStamps,
        limit: &RateLimit,
        flow: u64,
        cost: u64,
        now: Instant,
        latest: Instant,
    ) -> Result<RatePassage, OverRate> {
        self.limit = Some(*limit);
        let equal = self.equal;
        if !self.listed.contains_key(&flow) {
            let (shown, part) = (self.clock.at(now), limit.in_part(self.clock.part()));
            let (at, _) = part.pass(stamps.stamp(flow), shown, cost);
            let is_too_little = at > shown && equal != RatePart::WHOLE;
            if !is_too_little || self.list(stamps, flow, now).is_none() {
                return self.take_equal(stamps, limit, flow, cost, now, latest);
            }
        }
        match self.listed.get_mut(&flow) {
            Some(listed) => listed.take(limit, cost, equal, now, latest),
            None => self.take_equal(stamps, limit, flow, cost, now, latest),
        }
    }

    /// For a flow that is not listed.
    fn take_equal(
        &mut self,
        stamps: &mut FlowStamps,
        limit: &RateLimit,
        flow: u64,
        cost: u64,
        now: Instant,
        latest: Instant,
    ) -> Result<RatePassage, OverRate> {
        let (shown, part) = (self.clock.at(now), limit.in_part(self.clock.part()));
        let from = stamps.stamp(flow).map_or(shown, |stamp| stamp.max(shown));
        let latest = shown + self.clock.part().of((latest - now).max(0));
        match stamps.take(&part, flow, cost, shown, latest) {
            Ok(at) => {
                let ticket = RateTicket { from, span: limit.span_of(cost), place: None };
                let ticket = (at > shown).then_some(ticket);
                Ok(RatePassage { at: self.clock.when(at, self.clock.part(), now), ticket })
            }
            Err(OverRate { conforms_at }) => {
                Err(OverRate { conforms_at: self.clock.when(conforms_at, self.clock.part(), now) })
            }
        }
    }

    /// The flow among those that are listed; `None` if there is no place for it.
    fn list(&mut self, stamps: &mut FlowStamps, flow: u64, now: Instant) -> Option<&mut ListedFlow> {
        if !self.listed.contains_key(&flow) {
            if self.listed.len() >= LISTED_MAX {
                self.is_crowded = true;
                return None;
            }
            let stamp = stamps.stamp(flow);
            stamps.forget(flow);
            self.listed.insert(flow, ListedFlow::new(self.clock, stamp, now));
        }
        self.listed.get_mut(&flow)
    }
}
