//! Learnt costs against a plain model that keeps a list in order of use (CO-3), and how good they are.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_wrap,
    clippy::float_cmp,
    reason = "small numbers, and exact ones"
)]

use evenkeel_engine::cost::{CLASSES_MAX, ClassWidth, CostClass, Expectation, LearntCosts, SEEN_MIN};
use proptest::prelude::*;

/// Classes by name, the least recently used first.
#[derive(Default)]
struct PlainCosts(Vec<(Name, f64, u64)>);

/// Flow schema, route and flow, as far as the width goes.
type Name = (u64, Option<u64>, Option<u64>);

fn names(schema: u64, route: u64, flow: u64) -> [Name; 3] {
    [(schema, Some(route), Some(flow)), (schema, Some(route), None), (schema, None, None)]
}

impl PlainCosts {
    fn use_of(&mut self, name: Name) -> Option<&mut (Name, f64, u64)> {
        let found = self.0.iter().position(|(known, ..)| *known == name)?;
        let entry = self.0.remove(found);
        self.0.push(entry);
        self.0.last_mut()
    }

    fn expected(&mut self, class: (u64, u64, u64)) -> Option<(f64, u64)> {
        for (index, name) in names(class.0, class.1, class.2).into_iter().enumerate() {
            let seen = self.0.iter().find(|(known, ..)| *known == name).map(|(.., seen)| *seen);
            if seen.is_some_and(|seen| seen >= 8 || index == 2) {
                return self.use_of(name).map(|(_, mean, seen)| (*mean, *seen));
            }
        }
        None
    }

    fn learn(&mut self, class: (u64, u64, u64), cost: f64) {
        for name in names(class.0, class.1, class.2) {
            if self.use_of(name).is_none() {
                if self.0.len() == CLASSES_MAX {
                    self.0.remove(0);
                }
                self.0.push((name, 0.0, 0));
            }
            let (_, mean, seen) = self.0.last_mut().unwrap();
            *seen += 1;
            let weight = if *seen < 8 { 1.0 / *seen as f64 } else { 0.125 };
            let moved = *mean + (cost - *mean) * weight;
            *mean = if *mean == 0.0 { moved } else { moved.max(*mean / 4.0).min(*mean * 4.0) };
        }
    }
}

fn class_of((schema, route, flow): (u64, u64, u64)) -> CostClass {
    CostClass::new(schema, route, flow)
}

/// Each step: learn or ask, of a class. Sometimes one of very many flows.
fn steps() -> impl Strategy<Value = Vec<(bool, (u64, u64, u64), f64)>> {
    let flow = prop_oneof![4 => 0u64..3, 1 => 0u64..100_000];
    prop::collection::vec((any::<bool>(), (0u64..3, 0u64..4, flow), 0.0f64..1e6), 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn co_3_they_are_those_of_a_plain_list(seed: u64, steps in steps()) {
        let (mut costs, mut plain) = (LearntCosts::new(seed), PlainCosts::default());
        for (learns, class, cost) in steps {
            if learns {
                costs.learn(&class_of(class), cost);
                plain.learn(class, cost);
            } else {
                let peeked = costs.peek(&class_of(class));
                prop_assert_eq!(peeked, costs.expected(&class_of(class)));
                let expected = peeked.map(|found| (found.cost, found.requests));
                prop_assert_eq!(expected, plain.expected(class));
            }
            prop_assert_eq!(costs.len(), plain.0.len());
        }
    }

    #[test]
    fn no_cost_is_too_odd(costs in prop::collection::vec(prop::num::f64::ANY, 1..50)) {
        let mut learnt = LearntCosts::new(0);
        for cost in costs {
            learnt.learn(&CostClass::new(1, 1, 1), cost);
            let expected = learnt.expected(&CostClass::new(1, 1, 1)).unwrap().cost;
            prop_assert!(expected.is_finite() && expected >= 0.0, "{expected}");
        }
    }
}

/// With a full table, where the order of use decides who goes.
#[test]
fn co_3_a_full_table_forgets_the_least_recently_used_class() {
    let (mut costs, mut plain) = (LearntCosts::new(7), PlainCosts::default());
    let mut random = 1u64;
    for step in 0..3 * CLASSES_MAX as u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let class = (step % 2, random >> 60, (random >> 40) % 6000);
        costs.learn(&class_of(class), (random >> 50) as f64);
        plain.learn(class, (random >> 50) as f64);
        if step % 7 == 0 {
            let asked = (step % 2, random >> 60, (random >> 20) % 6000);
            let expected = costs.expected(&class_of(asked)).map(|found| (found.cost, found.requests));
            assert_eq!(expected, plain.expected(asked), "step {step}");
        }
        assert_eq!(costs.len(), plain.0.len());
    }
    assert_eq!(costs.len(), CLASSES_MAX);
}

#[test]
fn co_3_names_that_clients_make_up_cost_others_nothing_but_the_narrowest_class() {
    let mut costs = LearntCosts::new(3);
    for _ in 0..100 {
        costs.learn(&CostClass::new(1, 1, 1), 50.0);
    }
    for flow in 0..100_000 {
        costs.learn(&CostClass::new(2, 9, flow), 1.0);
        if flow % 1000 == 0 {
            costs.learn(&CostClass::new(1, 1, 1), 50.0);
        }
    }
    assert_eq!(costs.len(), CLASSES_MAX);
    let expected = costs.expected(&CostClass::new(1, 1, 1)).unwrap();
    assert!((expected.cost - 50.0).abs() < 1e-9 && expected.width == ClassWidth::Flow, "{expected:?}");
    let other = costs.expected(&CostClass::new(2, 9, u64::MAX)).unwrap();
    assert!((other.cost - 1.0).abs() < 1e-9 && other.width == ClassWidth::Route, "{other:?}");
}

#[test]
fn co_3_until_eight_requests_were_seen_the_wider_class_counts() {
    let mut costs = LearntCosts::new(0);
    let cheap = CostClass::new(1, 1, 1);
    costs.learn(&cheap, 2.0);
    let Expectation { cost, requests, width, .. } = costs.expected(&cheap).unwrap();
    assert_eq!((cost, requests, width), (2.0, 1, ClassWidth::Schema), "nothing is wider than the schema");
    for _ in 1..SEEN_MIN {
        costs.learn(&cheap, 2.0);
    }
    assert_eq!(costs.expected(&cheap).unwrap().width, ClassWidth::Flow);
    assert_eq!(costs.expected(&CostClass::new(1, 1, 2)).unwrap().width, ClassWidth::Route);
    assert_eq!(costs.expected(&CostClass::new(1, 2, 1)).unwrap().width, ClassWidth::Schema);
    assert_eq!(costs.expected(&CostClass::new(2, 1, 1)), None);
}

/// Standard normal numbers, by the sum of twelve uniform ones.
fn normal(random: &mut u64) -> f64 {
    let uniform = |random: &mut u64| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}

#[test]
fn co_3_after_fifty_requests_the_median_error_is_below_thirty_percent() {
    let sigma = 0.5f64;
    let mean = (sigma * sigma / 2.0).exp();
    let mut errors: Vec<f64> = (1..=500u64)
        .map(|seed| {
            let (mut costs, mut random) = (LearntCosts::new(seed), seed);
            for _ in 0..50 {
                costs.learn(&CostClass::new(1, 1, 1), (sigma * normal(&mut random)).exp());
            }
            (costs.expected(&CostClass::new(1, 1, 1)).unwrap().cost / mean - 1.0).abs()
        })
        .collect();
    errors.sort_by(f64::total_cmp);
    assert!(errors[250] < 0.3, "{}", errors[250]);
}

#[test]
fn co_3_a_class_that_gets_ten_times_dearer_is_known_after_25_requests() {
    let (mut costs, class) = (LearntCosts::new(0), CostClass::new(1, 1, 1));
    for _ in 0..100 {
        costs.learn(&class, 1.0);
    }
    for _ in 0..25 {
        costs.learn(&class, 10.0);
    }
    let expected = costs.expected(&class).unwrap().cost;
    assert!((7.0..=13.0).contains(&expected), "{expected}");
}
