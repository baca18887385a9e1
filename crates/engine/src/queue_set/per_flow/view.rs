//! Queries about this discipline: its flows and its virtual time, for metrics, dumps and dashboards.

use super::super::requests::{Links, NO_SLOT, is_queue};
use super::super::turn_order::InspectQueues;
use super::super::{ActiveFlowView, Outlook, QueueView, ReadingBounds};
use super::PerFlow;
use super::active_flow::{ActiveFlow, FlowStanding, key_of};
use crate::{Flow, SeatSeconds};

/// How many units of a key make a unit of seat-seconds.
const KEYS_PER_UNIT: i64 = 160;

// === impl PerFlow ===

impl PerFlow {
    /// The flows of which something waits or runs.
    pub(in crate::queue_set) fn active_flows(&self) -> impl Iterator<Item = ActiveFlowView> {
        let active = |(hash, flow): (u64, &ActiveFlow)| ActiveFlowView {
            hash,
            weight: flow.weight,
            seats_in_use: flow.seats,
            seats_waiting: flow.seats_waiting,
        };
        self.flows.all().filter(|(_, flow)| !flow.is_idle()).map(active)
    }

    /// What a request of this flow would find; `None` if there are no queues.
    ///
    /// Each start costs a flow what its requests are expected to take. Another flow starts as many requests first as it can
    /// before it has used more than this one will have. The flows know their service times themselves.
    #[expect(clippy::cast_precision_loss, reason = "an estimate needs no more than 53 bits")]
    pub(in crate::queue_set) fn outlook(&self, flow: Flow<'_>, _service_seconds: f64) -> Option<Outlook> {
        let limits = self.limits?;
        let number = self.flows.number_of(flow.hash());
        let own = number.map(|number| self.flows.get(number));
        let in_queue = own.map_or(0, |own| own.waiting);
        let least = self.waiting_flows().map(|queue| self.flows.get(queue).key(self.now)).min();
        let start = least.map_or(self.virtual_time, |least| least.max(self.virtual_time));
        // A flow of which nothing waits starts from the virtual time at least (PF-5).
        let key = match own {
            Some(own) if own.waiting > 0 => own.key(self.now),
            Some(own) => own.key(self.now).max(start),
            None => start,
        };
        let cost = key_of(own.map_or(self.estimate, |own| own.estimate), flow.weight()) as f64;
        let target = key as f64 + f64::from(in_queue) * cost;
        let standing = own.map_or(FlowStanding::Open, |own| self.standing(own, 1));
        let kept = self.newcomers.kept();
        // Flows that have to leave seats free do not start before one that need not.
        let passes =
            |queue: &u32| kept > 0 && standing == FlowStanding::Open && self.flows.get(*queue).standing != standing;
        let others = self.waiting_flows().filter(|queue| Some(*queue) != number && !passes(queue));
        let others = others.map(|queue| self.flows.get(queue));
        let before = others.map(|other| {
            let cost = key_of(other.estimate, other.weight).max(1) as f64;
            ((target - other.key(self.now) as f64) / cost).ceil().clamp(0.0, f64::from(other.waiting))
        });
        Some(Outlook {
            queue: number.map(|number| number as usize),
            in_queue: in_queue as usize,
            in_queue_max: limits.flow,
            ahead: f64::from(in_queue) + before.sum::<f64>(),
            kept: if standing == FlowStanding::Held { kept } else { 0 },
            passes_others: standing == FlowStanding::Open,
            is_at_flow_limit: standing == FlowStanding::Full,
        })
    }
}

impl InspectQueues for PerFlow {
    fn queue_length_limit(&self) -> i64 {
        self.queue_length_limit
    }

    fn virtual_time(&self) -> SeatSeconds {
        seat_seconds(self.virtual_time)
    }

    fn placed(&self) -> u64 {
        self.placed
    }

    fn last_start(&self) -> (SeatSeconds, SeatSeconds) {
        (seat_seconds(self.last_start.0), seat_seconds(self.last_start.1))
    }

    fn queue_count(&self) -> usize {
        self.flows.numbers_end()
    }

    fn queue(&self, number: usize) -> QueueView {
        let Some(flow) = self.flows.find(number) else { return QueueView::default() };
        let seats_waiting = i64::try_from(flow.seats_waiting).unwrap_or(i64::MAX);
        let expected = flow.estimate.saturating_mul(u64::from(flow.waiting)) / 10;
        QueueView {
            next_r: seat_seconds(flow.key(self.now)),
            waiting: flow.waiting as usize,
            executing: flow.running as usize,
            seats_in_use: i64::try_from(flow.seats).unwrap_or(i64::MAX),
            initial_seats_waiting: seats_waiting,
            max_seats_waiting: seats_waiting,
            work_waiting: SeatSeconds::from_units(expected),
        }
    }

    fn queue_length(&self, number: usize) -> usize {
        self.flows.waiting_of(number)
    }

    fn first_in(&self, number: usize) -> Option<u32> {
        self.flows.find(number).map(|flow| flow.first).filter(|&first| first != NO_SLOT)
    }

    fn behind(&self, slot: u32, _links: &[Links]) -> Option<u32> {
        self.waiting.behind(slot)
    }

    #[inline]
    fn number_of(&self, queue: u32) -> Option<usize> {
        is_queue(queue).then_some(queue as usize)
    }

    fn kept_seats(&self) -> i64 {
        self.newcomers.shown()
    }

    fn reading_bounds(&self) -> Option<ReadingBounds> {
        let keys = self.waiting_flows().map(|queue| seat_seconds(self.flows.get(queue).key(self.now)));
        let bounds = keys.map(|key| (key, key)).reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))?;
        Some(ReadingBounds { next_r: bounds, discounted: bounds })
    }
}

/// A key of weight 1 as an amount. What is behind the point from which keys are counted shows as nothing.
fn seat_seconds(key: i64) -> SeatSeconds {
    SeatSeconds::from_units(u64::try_from(key / KEYS_PER_UNIT).unwrap_or(0))
}
