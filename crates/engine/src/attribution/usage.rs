//! What an [`Attribution`] tells.

use super::names::FlowName;
use super::window::{Weights, Window};
use super::{Attribution, FlowKey, FlowPair};
use crate::time::{Instant, Nanos};

/// Who used a level lately, and who delayed whom.
#[derive(Debug)]
#[non_exhaustive]
pub struct LevelUsage<'a> {
    /// How long ago the time began that it is about: a minute at most, and half of one at least unless less has passed.
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
    attribution: &'a Attribution,
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
    /// Whose requests waited.
    pub delayed: FlowKey,
    /// Whose requests had the seats; `None` if no request of the level had one, since the level had none to give.
    pub behind: Option<FlowKey>,
    /// How long, in nanoseconds.
    pub wait: u64,
}

/// How many pairs the flows to blame are added up from.
const PAIRS: usize = 384;

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
            attribution: self,
        }
    }
}

/// Adds up whom everybody waited for.
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
    flows.sort_by_key(|(_, wait)| std::cmp::Reverse(*wait));
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
