//! Replays every recorded allocation problem (CL-20, CL-21).

use evenkeel_engine::borrowing::{Allocator, Class};
use evenkeel_recorded::{golden, rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    required_sum: f64,
    classes: Vec<RecordedClass>,
    allocs: Option<Vec<f64>>,
    fair_prop: f64,
    error: bool,
}

#[derive(Deserialize)]
struct RecordedClass {
    target: f64,
    lower: f64,
    upper: f64,
}

/// What came out: the allocations and the proportion, or nothing where there is no solution.
type Outcome = Option<(Vec<f64>, f64)>;

/// The relative difference that the README of the data allows: among equal bounds the reference has no order.
const TOLERANCE: f64 = 1e-9;

#[test]
fn allocations_are_those_of_kubernetes() {
    let Some(folder) = golden() else { return };
    let file = folder.join("engine/allocate.jsonl");
    let recorded: Vec<Row> = rows(&file);
    let mut allocator = Allocator::default();
    let mut identical = 0;
    for (row, recorded) in recorded.iter().enumerate() {
        let expected = recorded.outcome();
        let actual = recorded.solve(&mut allocator);
        assert!(
            agree(expected.as_ref(), actual.as_ref()),
            "{}, row {}:\n  recorded {expected:?}\n  actual   {actual:?}",
            file.display(),
            row + 1
        );
        identical += usize::from(expected == actual);
    }
    assert_eq!(recorded.len(), 1500);
    assert!(identical >= 1468, "only {identical} rows are the same to the last bit");
}

fn agree(expected: Option<&(Vec<f64>, f64)>, actual: Option<&(Vec<f64>, f64)>) -> bool {
    match (expected, actual) {
        (Some((expected, expected_proportion)), Some((actual, actual_proportion))) => {
            expected.len() == actual.len()
                && expected.iter().zip(actual).all(|(expected, actual)| is_close(*expected, *actual))
                && is_close(*expected_proportion, *actual_proportion)
        }
        (expected, actual) => expected.is_none() && actual.is_none(),
    }
}

fn is_close(expected: f64, actual: f64) -> bool {
    (expected - actual).abs() <= TOLERANCE * expected.abs()
}

// === impl Row ===

impl Row {
    fn outcome(&self) -> Outcome {
        let solved = self.allocs.clone().filter(|_| !self.error);
        solved.map(|allocations| (allocations, self.fair_prop))
    }

    fn solve(&self, allocator: &mut Allocator) -> Outcome {
        let classes: Vec<_> = self
            .classes
            .iter()
            .map(|class| Class { lower: class.lower, upper: class.upper, target: class.target })
            .collect();
        let solved = allocator.allocate(self.required_sum, &classes).ok()?;
        Some((solved.allocations.to_vec(), solved.proportion))
    }
}
