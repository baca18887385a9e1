//! `LevelUsage`: the report of an [`Attribution`].

use std::cmp::Reverse;

use super::flow_key::FlowUnit;
use super::names::FlowName;
use super::window::{Weights, Window};
use super::{Attribution, FlowKey, FlowPair, RequestStage};
use crate::time::{Instant, Nanos};

/// Who used a level lately, and who delayed whom.
#[derive(Debug)]
#[non_exhaustive]
pub struct LevelUsage<'a> {
    /// The length of time that the report covers: a minute at most, and half of one at least unless less has passed.
    pub window: Nanos,
    /// Seats times nanoseconds.
    pub seat_time: Ranking,
    /// Nanoseconds of waiting, of requests that have started or were rejected since.
    pub waiting: Ranking,
    /// Rejected requests.
    pub rejections: Ranking,
    /// Nanoseconds of waiting, by the flow to blame.
    pub blamed: Ranking,
    /// Who delayed whom.
    pub delays: Delays,
    /// The flows whose requests cost the most, in descending order; numbers in different units are not comparable.
    pub costs: Vec<FlowCost>,
    /// The flows that hold the most seats now, and those of which the most requests wait now.
    pub now: Vec<FlowNow>,
    attribution: &'a Attribution,
}

/// What a flow has at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct FlowNow {
    /// Which flow.
    pub flow: FlowKey,
    /// The seats that it holds.
    pub seats: u64,
    /// How many of its requests wait.
    pub waiting: u64,
    /// How long its oldest waiting request has waited, in nanoseconds.
    pub wait_longest: Nanos,
}

/// What the requests of a flow cost that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FlowCost {
    /// Which flow.
    pub flow: FlowKey,
    /// The number of the unit.
    pub unit: u8,
    /// The cost of all of them.
    pub cost: u64,
    /// What they were expected to cost.
    pub expected: u64,
}

/// The heaviest flows by one measure.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Ranking {
    /// The heaviest flows, in descending order.
    pub flows: Vec<(FlowKey, u64)>,
    /// What all flows have together.
    pub total: u64,
    /// By how much the figure of a flow may be wrong because of the others.
    pub error: u64,
}

/// Who delayed whom.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Delays {
    /// The largest, in descending order.
    pub pairs: Vec<Delay>,
    /// All waiting, in nanoseconds.
    pub total: u64,
    /// By how much the figure of a pair may be wrong because of the others.
    pub error: u64,
}

/// How long one flow waited behind another one, or behind requests of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Delay {
    /// The flow whose requests waited.
    pub delayed: FlowKey,
    /// The flow whose requests had the seats; `None` if no request of the level had one, since the level had none to give.
    pub behind: Option<FlowKey>,
    /// How long, in nanoseconds.
    pub wait: u64,
}

/// How many pairs the flows to blame are added up from.
const PAIRS: usize = 384;
/// How many requests are looked at to find out what flows have now. With more requests in a level, it is about some of them.
const REQUESTS_MAX: usize = 16_384;

// === impl Attribution ===

impl Attribution {
    /// Who used the level lately and who delayed whom: so many flows at most by each measure, and so many pairs.
    pub fn usage(&mut self, now: Instant, count: usize) -> LevelUsage<'_> {
        self.advance(now);
        self.count_running(now, self.start);
        let pairs = self.delays.weights(PAIRS);
        let blamed = blamed(&pairs, count);
        LevelUsage {
            window: now - self.previous_start,
            seat_time: Ranking::new(&self.seat_time, count),
            waiting: Ranking::new(&self.waiting, count),
            rejections: Ranking::new(&self.rejections, count),
            blamed,
            delays: Delays::new(&pairs, count),
            costs: self.costs(count),
            now: self.now(now, count),
            attribution: self,
        }
    }
}

impl Attribution {
    fn costs(&self, count: usize) -> Vec<FlowCost> {
        let of = |&(key, cost): &(FlowUnit, u64)| FlowCost {
            flow: key.flow,
            unit: key.unit,
            cost,
            expected: self.expected_costs.weight(key),
        };
        self.costs.weights(count).top.iter().map(of).collect()
    }

    /// The flows that have the most seats or the most waiting requests at this moment.
    fn now(&self, now: Instant, count: usize) -> Vec<FlowNow> {
        let running = self.running.iter().filter_map(|slot| self.requests.get(*slot as usize));
        let running = running.take(REQUESTS_MAX).map(|request| FlowNow {
            flow: request.flow,
            seats: request.seats.into(),
            ..FlowNow::default()
        });
        let waiting = self.requests.iter().filter(|request| matches!(request.stage, RequestStage::Waiting(_)));
        let waiting = waiting.take(REQUESTS_MAX).map(|request| FlowNow {
            flow: request.flow,
            waiting: 1,
            wait_longest: now - request.since,
            ..FlowNow::default()
        });
        let mut requests: Vec<FlowNow> = running.chain(waiting).collect();
        requests.sort_unstable_by_key(|request| request.flow);
        let mut flows: Vec<FlowNow> = Vec::new();
        for FlowNow { flow, seats, waiting, wait_longest } in requests {
            match flows.last_mut().filter(|last| last.flow == flow) {
                Some(last) => {
                    last.seats += seats;
                    last.waiting += waiting;
                    last.wait_longest = last.wait_longest.max(wait_longest);
                }
                None => flows.push(FlowNow { flow, seats, waiting, wait_longest }),
            }
        }
        // The first by either measure; nobody is listed twice.
        flows.sort_unstable_by_key(|flow| Reverse((flow.seats, flow.waiting)));
        let rest = flows.split_off(count.min(flows.len()));
        let mut waiting: Vec<FlowNow> = rest.into_iter().filter(|flow| flow.waiting > 0).collect();
        waiting.sort_unstable_by_key(|flow| Reverse(flow.waiting));
        flows.extend(waiting.into_iter().take(count));
        flows
    }
}

/// Adds up the waits of all pairs by the flow to blame.
fn blamed(pairs: &Weights<FlowPair>, count: usize) -> Ranking {
    let mut flows: Vec<(FlowKey, u64)> = Vec::new();
    let of_flows = pairs.top.iter().filter_map(|(pair, wait)| Some((pair.behind?, *wait)));
    let mut by_flow: Vec<(FlowKey, u64)> = of_flows.collect();
    by_flow.sort_unstable();
    for (flow, wait) in by_flow {
        match flows.last_mut() {
            Some((last, sum)) if *last == flow => *sum += wait,
            _ => flows.push((flow, wait)),
        }
    }
    flows.sort_by_key(|(_, wait)| Reverse(*wait));
    flows.truncate(count);
    Ranking { flows, total: pairs.total, error: pairs.error }
}

// === impl LevelUsage ===

impl LevelUsage<'_> {
    /// The name of a flow, if it is known: that of a flow that has become heavy comes with its next request.
    pub fn name(&self, flow: FlowKey) -> Option<FlowName<'_>> {
        self.attribution.names.get(flow)
    }
}

// === impl Ranking ===

impl Ranking {
    fn new(window: &Window<FlowKey>, count: usize) -> Self {
        let Weights { top, total, error } = window.weights(count);
        Self { flows: top, total, error }
    }

    /// What all flows have that are not in the ranking.
    pub fn other(&self) -> u64 {
        self.flows.iter().fold(self.total, |rest, (_, weight)| rest.saturating_sub(*weight))
    }
}

// === impl Delays ===

impl Delays {
    fn new(pairs: &Weights<FlowPair>, count: usize) -> Self {
        let delay = |(pair, wait): &(FlowPair, u64)| Delay { delayed: pair.delayed, behind: pair.behind, wait: *wait };
        Self { pairs: pairs.top.iter().take(count).map(delay).collect(), total: pairs.total, error: pairs.error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Level, NewRequest};
    use crate::queue_set::{Arrival, Mode, NoEffects, QueueSetConfig, RequestId};
    use crate::time::SECOND;
    use crate::{Flow, WorkEstimate};

    fn at(seconds: i64) -> Instant {
        Instant::from_nanos(seconds * SECOND)
    }

    struct Watched(Level<(), Attribution>);

    impl Watched {
        fn arrive(&mut self, seconds: i64, user: &str, seats: u32) -> RequestId {
            let request = NewRequest::new(Flow::new("tenants", user), WorkEstimate::seats(seats));
            match self.0.arrive(at(seconds), request, (), &mut NoEffects) {
                Arrival::Started { id, .. } | Arrival::Waiting { id, .. } => id,
                Arrival::Rejected { .. } => panic!("the queue has room"),
            }
        }

        /// Who has how many seats, how many requests that wait, and for how many seconds.
        fn now(&mut self, seconds: i64) -> Vec<(String, u64, u64, i64)> {
            let usage = self.0.observer_mut().usage(at(seconds), 20);
            let named = usage.now.iter().map(|now| {
                let name = usage.name(now.flow).unwrap().distinguisher.to_owned();
                (name, now.seats, now.waiting, now.wait_longest / SECOND)
            });
            named.collect()
        }
    }

    /// CO-6: what requests cost is known by flow and unit, and forgotten after a minute.
    #[test]
    fn co_6_costs_are_added_up_by_flow_and_unit() {
        let config = QueueSetConfig { mode: Mode::queue(8, 2, 50).unwrap(), concurrency_limit: 4 };
        let mut level = Watched(Level::with_observer(config, Attribution::new(7), at(0)));
        let [export, alice] = ["export", "alice"].map(|user| level.arrive(0, user, 1));
        let observer = level.0.observer_mut();
        for (id, unit, cost) in [(export, 1, 900), (export, 1, 100), (export, 3, 5), (alice, 1, 7)] {
            observer.costed(at(1), id, unit, cost, 10);
        }
        let usage = observer.usage(at(2), 20);
        let name = |flow| usage.name(flow).unwrap().distinguisher;
        let costs: Vec<_> = usage.costs.iter().map(|one| (name(one.flow), one.unit, one.cost, one.expected)).collect();
        assert_eq!(costs, [("export", 1, 1000, 20), ("alice", 1, 7, 10), ("export", 3, 5, 10)]);
        assert_eq!(observer.usage(at(90), 20).costs, []);
    }

    #[test]
    fn who_holds_seats_and_who_waits_is_known_before_anything_ends() {
        let config = QueueSetConfig { mode: Mode::queue(8, 2, 50).unwrap(), concurrency_limit: 4 };
        let mut level = Watched(Level::with_observer(config, Attribution::new(7), at(0)));
        let [first, second] = [1, 3].map(|seats| level.arrive(0, "export", seats));
        let waiting: Vec<_> = (2..4).map(|second| level.arrive(second, "alice", 1)).collect();
        let of = |name: &str, seats, waiting, longest| (name.to_owned(), seats, waiting, longest);
        assert_eq!(level.now(9), [of("export", 4, 0, 0), of("alice", 0, 2, 7)]);
        level.0.finish(at(10), first, &mut NoEffects);
        assert_eq!(level.now(10), [of("export", 3, 0, 0), of("alice", 1, 1, 7)]);
        level.0.cancel(at(11), waiting[1], &mut NoEffects);
        assert_eq!(level.now(11), [of("export", 3, 0, 0), of("alice", 1, 0, 0)]);
        level.0.finish(at(12), second, &mut NoEffects);
        level.0.finish(at(12), waiting[0], &mut NoEffects);
        assert_eq!(level.now(12), []);
    }
}
