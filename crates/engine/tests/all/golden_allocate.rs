//! Replays every recorded allocation problem (CL-20, CL-21).

use evenkeel_engine::borrowing::{Allocator, Class};
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    required_sum: f64,
    classes: Vec<RecordedClass>,
    allocs: Option<Vec<f64>>,
    fair_prop: f64,
    error: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedClass {
    target: f64,
    lower: f64,
    upper: f64,
}

/// The relative difference that the README of the data allows: among equal bounds the reference has no order.
const TOLERANCE: f64 = 1e-9;

#[test]
fn allocations_are_those_of_kubernetes() {
    let recorded = golden_rows::<Row>(Golden::Allocate);
    let mut allocator = Allocator::default();
    for (file, rows) in &recorded {
        for (row, recorded) in rows.iter().enumerate() {
            recorded.compare(&mut allocator).assert(format_args!("{}, row {}", file.display(), row + 1));
        }
    }
    compared("allocation problems", recorded.iter().map(|(_, rows)| rows.len()).sum());
}

// === impl Row ===

impl Row {
    fn compare(&self, allocator: &mut Allocator) -> SideBySide {
        let class = |class: &RecordedClass| Class { lower: class.lower, upper: class.upper, target: class.target };
        let classes: Vec<_> = self.classes.iter().map(class).collect();
        let solved = allocator.allocate(self.required_sum, &classes);
        let mut comparison = SideBySide::default();
        comparison.same("error", &self.error, &solved.is_err());
        // The proportion of a problem without a solution means nothing.
        if let (false, Some(expected), Ok(solved)) = (self.error, &self.allocs, solved) {
            comparison.close("proportion", self.fair_prop, solved.proportion, TOLERANCE);
            comparison.same("classes", &expected.len(), &solved.allocations.len());
            for (index, (expected, actual)) in expected.iter().zip(solved.allocations).enumerate() {
                comparison.close(format_args!("class {index}"), *expected, *actual, TOLERANCE);
            }
        } else {
            comparison.same("has allocations", &!self.error, &self.allocs.is_some());
        }
        comparison
    }
}
