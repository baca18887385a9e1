//! What holds for every division of a service's seats among instances: none are lost, none are invented, and flows are
//! treated alike wherever their requests arrive (FL-4).

#![expect(clippy::cast_precision_loss, reason = "all numbers are small")]

use std::collections::BTreeMap;

use evenkeel_engine::fleet_division::{FlowLoad, InstanceLoad, LevelLoad, divide};
use proptest::prelude::*;

proptest! {
    #[test]
    fn fl_4_all_seats_are_divided_and_no_more(seats in 0_u64..5_000, instances in fleet(1..9)) {
        prop_assert_eq!(divide(seats, &instances).iter().sum::<u64>(), seats);
    }

    #[test]
    fn fl_4_nobody_has_seats_to_spare_while_another_is_short(seats in 0_u64..3_000, instances in fleet(1..9)) {
        let division = divide(seats, &instances);
        let short = (0..instances.len()).any(|at| division[at] < demand(&instances[at]));
        for (seats, instance) in division.iter().zip(&instances) {
            prop_assert!(!short || *seats <= demand(instance).max(1), "{:?}", division);
        }
    }

    #[test]
    fn fl_4_every_instance_can_start_a_request(instances in fleet(1..33)) {
        let division = divide(2 * instances.len() as u64, &instances);
        prop_assert!(division.iter().all(|seats| *seats > 0), "{:?}", division);
    }

    #[test]
    fn fl_4_more_demand_never_gets_less(
        seats in 0_u64..3_000,
        instances in fleet(1..9),
        who in any::<prop::sample::Index>(),
        level in any::<prop::sample::Index>(),
        flow in any::<prop::sample::Index>(),
        more in 1_u64..1_000,
    ) {
        let before = divide(seats, &instances);
        let mut instances = instances;
        let at = who.index(instances.len());
        let level = level.get(&LEVELS).0;
        let Some(level) = instances[at].levels.iter_mut().find(|load| load.name == level) else { return Ok(()) };
        if level.flows.is_empty() {
            return Ok(());
        }
        let flow = flow.index(level.flows.len());
        level.flows[flow].demand += more;
        level.demand += more;
        let after = divide(seats, &instances);
        // A seat may go to another because of rounding.
        prop_assert!(after[at] + 1 >= before[at], "{} instead of {}", after[at], before[at]);
    }

    #[test]
    fn fl_4_more_seats_for_the_service_are_no_fewer_for_an_instance(
        seats in 0_u64..3_000,
        more in 0_u64..500,
        instances in fleet(1..9),
    ) {
        // The limits of the levels stay as they are, so that only the division is compared.
        let (before, after) = (divide(seats, &instances), divide(seats + more, &instances));
        for (before, after) in before.iter().zip(&after) {
            prop_assert!(after + 2 >= *before, "{after} instead of {before}");
        }
    }

    #[test]
    fn fl_4_the_division_is_that_of_a_slow_one(seats in 100_u64..3_000, instances in fleet(2..9)) {
        let slow = divide_slowly(seats, &instances);
        // Where demand is met or seats are left by a level's upper limit, the rest is divided by other rules.
        if slow.iter().sum::<f64>() < seats as f64 - 0.5 || slow.iter().any(|seats| *seats < 1.0) {
            return Ok(());
        }
        for (seats, expected) in divide(seats, &instances).iter().zip(&slow) {
            prop_assert!((*seats as f64 - expected).abs() < 1.01, "{seats} instead of {expected}");
        }
    }

    #[test]
    fn fl_4_no_publication_is_too_odd(
        seats in any::<u64>(),
        numbers in prop::collection::vec(any::<u64>(), 9),
        instances in fleet(1..4),
    ) {
        let mut instances = instances;
        instances[0].levels.push(LevelLoad {
            name: "odd".into(),
            floor: numbers[0],
            nominal: numbers[1],
            max: numbers[2],
            borrowing_weight: numbers[3],
            demand: numbers[4],
            flow_weight: numbers[5],
            flows: vec![FlowLoad { hash: numbers[6], weight: numbers[7], demand: numbers[8] }; 2],
        });
        prop_assert_eq!(divide(seats, &instances).iter().sum::<u64>(), seats.min(1 << 31));
    }
}

#[test]
fn fl_4_a_flow_on_three_instances_is_one_flow() {
    let everywhere = || backlogged(&[1]);
    assert_eq!(divide(600, &[everywhere(), everywhere(), everywhere(), backlogged(&[2])]), [100, 100, 100, 300]);
    // Twelve tenants, one of them alone on an instance, the others on two: every tenant has a twelfth.
    let others: Vec<u64> = (2..13).collect();
    assert_eq!(divide(600, &[backlogged(&[1]), backlogged(&others), backlogged(&others)]), [50, 275, 275]);
}

#[test]
fn fl_4_weights_count() {
    let mut heavy = backlogged(&[2]);
    heavy.levels[0].flows[0].weight = 3;
    heavy.levels[0].flow_weight = 3;
    assert_eq!(divide(600, &[backlogged(&[1]), heavy]), [150, 450]);
}

#[test]
fn fl_4_flows_that_are_not_listed_have_their_weight_and_demand() {
    let mut many = backlogged(&[]);
    many.levels[0].demand = 5_000;
    many.levels[0].flow_weight = 5;
    assert_eq!(divide(600, &[backlogged(&[1]), many]), [100, 500]);
}

#[test]
fn fl_4_seats_follow_demand_and_the_rest_is_divided_evenly() {
    let instances = [540, 30, 30].map(|demand| {
        let mut instance = backlogged(&[demand]);
        (instance.levels[0].demand, instance.levels[0].flows[0].demand) = (demand, demand);
        instance
    });
    assert_eq!(divide(600, &instances), [540, 30, 30]);
    assert_eq!(divide(630, &instances), [550, 40, 40]);
    assert_eq!(divide(600, &[const { InstanceLoad { levels: Vec::new() } }; 3]), [200, 200, 200]);
    assert!(divide::<InstanceLoad>(600, &[]).is_empty());
}

#[test]
fn fl_4_levels_have_what_they_cannot_lend_then_their_own_then_what_is_left() {
    let level = |name: &str, floor, nominal, max, demand| LevelLoad {
        name: name.into(),
        floor,
        nominal,
        max,
        borrowing_weight: nominal,
        demand,
        flow_weight: 1,
        flows: Vec::new(),
    };
    let one = |level: LevelLoad| InstanceLoad { levels: vec![level] };
    // Both want everything: each has its own.
    let both = [one(level("a", 50, 200, 600, 900)), one(level("b", 50, 400, 600, 900))];
    assert_eq!(divide(600, &both), [200, 400]);
    // One wants little: the other borrows.
    let borrowed = [one(level("a", 50, 200, 600, 900)), one(level("b", 50, 400, 600, 100))];
    assert_eq!(divide(600, &borrowed), [500, 100]);
    // Fewer seats than all own ones: floors first.
    assert_eq!(divide(100, &[one(level("a", 50, 50, 600, 900)), one(level("b", 0, 550, 600, 900))]), [50, 50]);
    // An upper limit leaves seats to instances with unmet demand.
    assert_eq!(divide(600, &[one(level("a", 0, 300, 300, 900)), one(level("b", 0, 300, 600, 0))]), [599, 1]);
}

/// An instance with one level of 600 seats, and a thousand requests of each of these flows.
fn backlogged(flows: &[u64]) -> InstanceLoad {
    let flows: Vec<FlowLoad> = flows.iter().map(|hash| FlowLoad { hash: *hash, weight: 1, demand: 1_000 }).collect();
    let level = LevelLoad {
        name: "people".into(),
        floor: 300,
        nominal: 600,
        max: 600,
        borrowing_weight: 600,
        demand: flows.len() as u64 * 1_000,
        flow_weight: flows.len() as u64,
        flows,
    };
    InstanceLoad { levels: vec![level] }
}

fn demand(instance: &InstanceLoad) -> u64 {
    instance.levels.iter().map(|level| level.demand).sum()
}

/// The levels of the random fleets: name, floor, nominal, max and weight, of a thousand seats.
const LEVELS: [(&str, u64, u64, u64, u64); 3] =
    [("batch", 50, 100, 5_000, 1), ("people", 300, 600, 5_000, 6), ("system", 0, 300, 400, 3)];

fn fleet(instances: std::ops::Range<usize>) -> impl Strategy<Value = Vec<InstanceLoad>> {
    let flow = (0_u64..5, 0_u64..400).prop_map(|(hash, demand)| FlowLoad { hash, weight: 1 + hash % 3, demand });
    let flows = prop::collection::btree_map(0_u64..5, flow, 0..5).prop_map(|flows| {
        flows.into_iter().map(|(hash, flow)| FlowLoad { hash, weight: 1 + hash % 3, ..flow }).collect::<Vec<_>>()
    });
    let level = (flows, 0_u64..100, 0_u64..3);
    let levels = prop::collection::vec(level, 3).prop_map(|levels| {
        let load =
            |((name, floor, nominal, max, weight), (flows, others, others_weight)): (_, (Vec<FlowLoad>, u64, u64))| {
                LevelLoad {
                    name: str::to_owned(name),
                    floor,
                    nominal,
                    max,
                    borrowing_weight: weight,
                    demand: flows.iter().map(|flow| flow.demand).sum::<u64>() + others,
                    flow_weight: flows.iter().map(|flow| flow.weight).sum::<u64>() + others_weight,
                    flows,
                }
            };
        InstanceLoad { levels: LEVELS.into_iter().zip(levels).map(load).collect() }
    });
    prop::collection::vec(levels, instances)
}

/// The same division in binary64, by raising what everybody gets until the seats are used up.
fn divide_slowly(seats: u64, instances: &[InstanceLoad]) -> Vec<f64> {
    let mut division = vec![0.0; instances.len()];
    let level_demand = |name: &str| -> f64 {
        instances
            .iter()
            .flat_map(|load| &load.levels)
            .filter(|load| load.name == name)
            .map(|load| load.demand as f64)
            .sum()
    };
    let mut left = seats as f64;
    let mut given = [0.0; LEVELS.len()];
    for step in 0..3 {
        let claims: Vec<(f64, f64)> = LEVELS
            .iter()
            .zip(given)
            .map(|(&(name, floor, nominal, max, weight), given)| {
                let (upper, weight) = [(floor, floor), (nominal, nominal), (max, weight)][step];
                ((level_demand(name).min(upper as f64) - given).max(0.0), weight.max(1) as f64)
            })
            .collect();
        for (given, more) in given.iter_mut().zip(raise(left, &claims)) {
            *given += more;
            left -= more;
        }
    }
    for (&(name, ..), given) in LEVELS.iter().zip(given) {
        let mut flows: BTreeMap<(u64, usize), (f64, Vec<f64>)> = BTreeMap::new();
        for (at, instance) in instances.iter().enumerate() {
            for level in instance.levels.iter().filter(|level| level.name == name) {
                let (mut weight, mut demand) = (level.flow_weight, level.demand);
                for flow in &level.flows {
                    let entry = flows.entry((flow.hash, usize::MAX)).or_insert((0.0, vec![0.0; instances.len()]));
                    entry.0 = flow.weight as f64;
                    entry.1[at] += flow.demand as f64;
                    (weight, demand) = (weight - flow.weight, demand - flow.demand);
                }
                let others = flows.entry((0, at)).or_insert((0.0, vec![0.0; instances.len()]));
                others.0 = weight.max(1) as f64;
                others.1[at] = demand as f64;
            }
        }
        let claims: Vec<(f64, f64)> = flows.values().map(|(weight, places)| (places.iter().sum(), *weight)).collect();
        for ((_, places), part) in flows.values().zip(raise(given, &claims)) {
            let demand: f64 = places.iter().sum();
            for (seats, place) in division.iter_mut().zip(places) {
                *seats += if demand > 0.0 { part * place / demand } else { 0.0 };
            }
        }
    }
    division
}

/// Weighted max-min of (demand, weight) by bisection.
fn raise(total: f64, claims: &[(f64, f64)]) -> Vec<f64> {
    let parts = |level: f64| claims.iter().map(move |(demand, weight)| demand.min(level * weight));
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        *(if parts(middle).sum::<f64>() > total { &mut high } else { &mut low }) = middle;
    }
    parts(low).collect()
}
