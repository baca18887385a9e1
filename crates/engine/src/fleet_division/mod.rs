//! Dividing the seats of one service among the instances in front of it (FL-4).
//!
//! A pure function of what the instances publish: all of them compute it, and all get the same. Three steps:
//!
//! 1. Levels share the seats by the rules of borrowing at once (LB), as if one server had the sum of all demands: what
//!    cannot be lent first, then their own seats, then what is left by weight.
//! 2. Flows share a level's seats by weighted max-min. A flow on three instances is one flow; its seats go to the instances in
//!    proportion to its demand there. Flows that an instance does not list are one flow with their weight and demand.
//! 3. Seats that are left go to instances with unmet demand, then evenly to all, so that requests which arrive now find some.
//!
//! All numbers are integers, so that no instance rounds differently from another.
//!
//! ```
//! use evenkeel_engine::fleet_division::{FlowLoad, InstanceLoad, LevelLoad, divide};
//!
//! // Two flows want everything. One of them is on two instances, and gets no more for that.
//! let level = |hash| LevelLoad {
//!     name: "people".into(),
//!     floor: 30,
//!     nominal: 60,
//!     max: 60,
//!     borrowing_weight: 60,
//!     demand: 100,
//!     flow_weight: 1,
//!     flows: vec![FlowLoad { hash, weight: 1, demand: 100 }],
//! };
//! let instances = [1, 1, 2].map(|hash| InstanceLoad { levels: vec![level(hash)] });
//! assert_eq!(divide(60, &instances), [15, 15, 30]);
//! ```

mod max_min;

use std::borrow::Borrow;
use std::collections::BTreeMap;

pub(crate) use max_min::proportional;
use max_min::{Claim, max_min};

/// A seat in the fractions in which flows get them.
const SEAT: u64 = 1 << 20;

/// No demand, weight or number of seats counts for more, so that nothing overflows, whatever an instance publishes.
const COUNT_MAX: u64 = 1 << 31;

/// What one instance publishes of its load.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct InstanceLoad {
    /// Its levels, in any order. Levels that others name and this instance does not have no demand here.
    pub levels: Vec<LevelLoad>,
}

/// One level on one instance.
///
/// Where instances disagree about the limits of a level, the first one that names it is right.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LevelLoad {
    /// Its name.
    pub name: String,
    /// The seats of the whole service that the level cannot lend.
    pub floor: u64,
    /// The seats of the whole service that the level has of its own.
    pub nominal: u64,
    /// The seats of the whole service that the level can have at most.
    pub max: u64,
    /// Its weight when it borrows.
    pub borrowing_weight: u64,
    /// The seats that it could use on this instance: in use and waiting, all flows together.
    pub demand: u64,
    /// The weights of all flows that are active on this instance, added up.
    pub flow_weight: u64,
    /// The heaviest of those flows.
    pub flows: Vec<FlowLoad>,
}

/// One flow of a level on one instance.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowLoad {
    /// What tells it from other flows, on all instances alike.
    pub hash: u64,
    /// Its weight. Where instances disagree, the largest counts.
    pub weight: u64,
    /// The seats that it could use on this instance.
    pub demand: u64,
}

/// A level with its demand on all instances.
#[derive(Debug)]
struct FleetLevel<'a> {
    limits: &'a LevelLoad,
    demand: u64,
    flows: BTreeMap<FlowKey, FleetFlow>,
}

/// A flow that may be on many instances, or the flows that one instance does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FlowKey {
    Listed { hash: u64 },
    Others { instance: usize },
}

#[derive(Debug, Default)]
struct FleetFlow {
    weight: u64,
    demand: u64,
    /// The instances where it is, and its demand there.
    places: Vec<(usize, u64)>,
}

/// A step of dividing seats among levels: up to how many seats a level gets in it, and its weight beside others.
type LevelStep = fn(&LevelLoad) -> (u64, u64);

/// How many of the service's `seats` each instance gets, in the order of `instances`.
///
/// The numbers add up to `seats`, unless there are no instances. Every instance has a seat if there are two for each, so that
/// one without demand can start its first request.
pub fn divide<L: Borrow<InstanceLoad>>(seats: u64, instances: &[L]) -> Vec<u64> {
    let seats = seats.min(COUNT_MAX);
    let instances: Vec<&InstanceLoad> = instances.iter().map(Borrow::borrow).collect();
    let levels = levels_of(&instances);
    let mut fractions = vec![0_u64; instances.len()];
    for (level, given) in levels.iter().zip(divide_among_levels(seats, &levels)) {
        divide_among_flows(level, given, &mut fractions);
    }
    let demands: Vec<u64> =
        instances.iter().map(|instance| instance.levels.iter().map(demand_of).sum::<u64>().min(COUNT_MAX)).collect();
    let mut division = whole_seats(&fractions, &demands);
    hand_out_rest(seats, &demands, &mut division);
    keep_one_each(seats, &mut division);
    division
}

/// The demand of a level on one instance: what it says, or what its flows add up to if that is more.
fn demand_of(level: &LevelLoad) -> u64 {
    let listed = level.flows.iter().map(|flow| flow.demand.min(COUNT_MAX)).sum::<u64>();
    level.demand.max(listed).min(COUNT_MAX)
}

fn levels_of<'a>(instances: &[&'a InstanceLoad]) -> Vec<FleetLevel<'a>> {
    let mut levels = BTreeMap::new();
    for (instance, load) in instances.iter().enumerate() {
        for level in &load.levels {
            let fleet = levels.entry(level.name.as_str()).or_insert_with(|| FleetLevel {
                limits: level,
                demand: 0,
                flows: BTreeMap::new(),
            });
            fleet.add(instance, level);
        }
    }
    levels.into_values().collect()
}

/// The seats of each level, in fractions: what nobody can borrow first, then its own, then what is left by weight (LB-3).
fn divide_among_levels(seats: u64, levels: &[FleetLevel<'_>]) -> Vec<u64> {
    let mut given = vec![0_u64; levels.len()];
    let mut left = seats * SEAT;
    let steps: [LevelStep; 3] = [
        |limits| (limits.floor.min(limits.nominal), limits.floor),
        |limits| (limits.nominal, limits.nominal),
        |limits| (limits.max.max(limits.nominal), limits.borrowing_weight),
    ];
    for step in steps {
        let claims: Vec<Claim> = levels
            .iter()
            .zip(&given)
            .map(|(level, given)| {
                let (upper, weight) = step(level.limits);
                let wanted = level.demand.min(upper.min(COUNT_MAX)) * SEAT;
                Claim { demand: wanted.saturating_sub(*given), weight: weight.clamp(1, COUNT_MAX) }
            })
            .collect();
        for (given, more) in given.iter_mut().zip(max_min(left, &claims)) {
            *given += more;
            left -= more;
        }
    }
    given
}

/// Adds the fractions that each instance gets of a level.
fn divide_among_flows(level: &FleetLevel<'_>, given: u64, fractions: &mut [u64]) {
    let claims: Vec<Claim> = level
        .flows
        .values()
        .map(|flow| Claim { demand: flow.demand.min(COUNT_MAX) * SEAT, weight: flow.weight.clamp(1, COUNT_MAX) })
        .collect();
    for (flow, given) in level.flows.values().zip(max_min(given, &claims)) {
        let demands: Vec<u64> = flow.places.iter().map(|(_, demand)| *demand).collect();
        for ((instance, _), part) in flow.places.iter().zip(proportional(given, &demands)) {
            fractions[*instance] += part;
        }
    }
}

/// Whole seats of the fractions: rounded down, and the seats that this leaves to the largest remainders.
fn whole_seats(fractions: &[u64], demands: &[u64]) -> Vec<u64> {
    let mut division: Vec<u64> = fractions.iter().map(|fraction| fraction / SEAT).collect();
    let rounded_off = fractions.iter().map(|fraction| fraction % SEAT).sum::<u64>() / SEAT;
    let mut order: Vec<usize> = (0..fractions.len()).filter(|at| division[*at] < demands[*at]).collect();
    order.sort_by_key(|at| std::cmp::Reverse(fractions[*at] % SEAT));
    for at in order.into_iter().take(usize::try_from(rounded_off).unwrap_or(usize::MAX)) {
        division[at] += 1;
    }
    division
}

/// Divides what is left by unmet demand, then evenly.
fn hand_out_rest(seats: u64, demands: &[u64], division: &mut [u64]) {
    let left = seats.saturating_sub(division.iter().sum());
    let unmet = |(demand, seats): (&u64, &u64)| Claim { demand: demand.saturating_sub(*seats), weight: 1 };
    let claims: Vec<Claim> = demands.iter().zip(&*division).map(unmet).collect();
    for (seats, more) in division.iter_mut().zip(max_min(left, &claims)) {
        *seats += more;
    }
    let left = seats.saturating_sub(division.iter().sum());
    let evenly = vec![1; division.len()];
    for (seats, more) in division.iter_mut().zip(proportional(left, &evenly)) {
        *seats += more;
    }
}

/// Gives a seat of the largest to each instance that has none, if there are two for each.
fn keep_one_each(seats: u64, division: &mut [u64]) {
    if seats / 2 < division.len() as u64 {
        return;
    }
    for at in 0..division.len() {
        if division[at] == 0 {
            if let Some(largest) = division.iter_mut().max() {
                *largest -= 1;
            }
            division[at] = 1;
        }
    }
}

// === impl FleetLevel ===

impl FleetLevel<'_> {
    fn add(&mut self, instance: usize, level: &LevelLoad) {
        let demand = demand_of(level);
        self.demand = (self.demand + demand).min(COUNT_MAX);
        let mut others = FlowLoad { hash: 0, weight: level.flow_weight.min(COUNT_MAX), demand };
        for flow in &level.flows {
            let (weight, demand) = (flow.weight.min(COUNT_MAX), flow.demand.min(COUNT_MAX));
            others.weight = others.weight.saturating_sub(weight);
            others.demand = others.demand.saturating_sub(demand);
            self.flows.entry(FlowKey::Listed { hash: flow.hash }).or_default().add(instance, weight, demand);
        }
        if others.demand > 0 {
            let flow = self.flows.entry(FlowKey::Others { instance }).or_default();
            flow.add(instance, others.weight, others.demand);
        }
    }
}

// === impl FleetFlow ===

impl FleetFlow {
    fn add(&mut self, instance: usize, weight: u64, demand: u64) {
        self.weight = self.weight.max(weight);
        self.demand = (self.demand + demand).min(COUNT_MAX);
        self.places.push((instance, demand));
    }
}
