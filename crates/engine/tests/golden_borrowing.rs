//! Replays every recorded course of demand, and compares statistics and limits after each period (CL-8 to CL-17).

mod digested;

use std::collections::BTreeMap;
use std::fmt;

use digested::{Level, Levels};
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::time::Instant;
use evenkeel_recorded::{golden, rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    server_concurrency_limit: i64,
    priority_levels: Vec<PriorityLevelConfiguration>,
    initial: BTreeMap<String, State>,
    periods: Vec<Period>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Period {
    demand: Vec<Demand>,
    end: String,
    op: Operation,
    #[serde(default)]
    priority_levels: Vec<PriorityLevelConfiguration>,
    fair_frac: f64,
    result: BTreeMap<String, State>,
}

#[derive(Deserialize)]
struct Demand {
    t: String,
    level: String,
    seats: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Operation {
    Adjust,
    Reconfigure,
}

#[derive(Deserialize, Debug, Clone, Copy)]
#[serde(rename_all = "camelCase")]
struct State {
    high_watermark: i64,
    avg: f64,
    std_dev: f64,
    smoothed: f64,
    target: Option<f64>,
    #[serde(rename = "nominalCL")]
    nominal: i64,
    #[serde(rename = "minCL")]
    min: i64,
    #[serde(rename = "maxCL")]
    max: i64,
    #[serde(rename = "currentCL")]
    current: i64,
}

/// The relative differences that the README of the data allows.
const TOLERANCE: f64 = 1e-9;
const TOLERANCE_AFTER_CANCELLING: f64 = 1e-6;

#[test]
fn limits_follow_demand_as_in_kubernetes() {
    let Some(folder) = golden() else { return };
    let file = folder.join("engine/borrowing.jsonl.gz");
    let recorded: Vec<Row> = rows(&file);
    let (mut periods, mut states) = (0, 0);
    for (row, recorded) in recorded.iter().enumerate() {
        let place =
            |step: &dyn fmt::Display| format!("{}, row {} ({}), {step}", file.display(), row + 1, recorded.name);
        let mut levels = Levels::new(recorded.server_concurrency_limit);
        levels.digest(Instant::default(), &recorded.priority_levels);
        assert_states(&recorded.initial, &levels, &place(&"start"));
        for (step, period) in recorded.periods.iter().enumerate() {
            period.replay(&mut levels);
            let place = place(&format_args!("period {step}"));
            assert_states(&period.result, &levels, &place);
            let (expected, actual) = (period.fair_frac, levels.adjustment.fair_fraction);
            assert!(
                is_close(expected, actual, TOLERANCE_AFTER_CANCELLING),
                "{place}, fair fraction:\n  recorded {expected}\n  actual   {actual}"
            );
            periods += 1;
            states += period.result.len();
        }
    }
    assert_eq!((recorded.len(), periods, states), (60, 613, 3614));
}

fn assert_states(expected: &BTreeMap<String, State>, levels: &Levels, place: &str) {
    let actual: BTreeMap<_, _> = levels.by_name.iter().map(|(name, level)| (name.clone(), State::of(level))).collect();
    assert!(expected.keys().eq(actual.keys()), "{place}:\n  recorded {expected:?}\n  actual   {actual:?}");
    for (name, expected) in expected {
        let actual = actual[name];
        assert!(expected.agrees_with(&actual), "{place}, {name}:\n  recorded {expected:?}\n  actual   {actual:?}");
    }
}

fn is_close(expected: f64, actual: f64, tolerance: f64) -> bool {
    (expected - actual).abs() <= tolerance * expected.abs()
}

// === impl Period ===

impl Period {
    fn replay(&self, levels: &mut Levels) {
        for demand in &self.demand {
            levels.by_name.get_mut(&demand.level).expect("a level").demand.set(instant(&demand.t), demand.seats);
        }
        match self.op {
            Operation::Adjust => levels.adjust(instant(&self.end)),
            Operation::Reconfigure => levels.digest(instant(&self.end), &self.priority_levels),
        }
    }
}

fn instant(nanos: &str) -> Instant {
    Instant::from_nanos(nanos.parse().expect("a number"))
}

// === impl State ===

impl State {
    fn of(level: &Level) -> Self {
        Self {
            high_watermark: level.statistics.high_watermark,
            avg: level.statistics.average,
            std_dev: level.statistics.deviation,
            smoothed: level.statistics.smoothed,
            target: level.target,
            nominal: level.limits.nominal,
            min: level.limits.min,
            max: level.limits.max,
            current: level.current.expect("a digest"),
        }
    }

    fn agrees_with(&self, actual: &Self) -> bool {
        let whole = |state: &Self| (state.high_watermark, state.nominal, state.min, state.max, state.current);
        whole(self) == whole(actual)
            && is_close(self.avg, actual.avg, TOLERANCE)
            && is_close(self.std_dev, actual.std_dev, TOLERANCE_AFTER_CANCELLING)
            && is_close(self.smoothed, actual.smoothed, TOLERANCE_AFTER_CANCELLING)
            && match (self.target, actual.target) {
                (Some(expected), Some(actual)) => is_close(expected, actual, TOLERANCE_AFTER_CANCELLING),
                (expected, actual) => expected.is_none() && actual.is_none(),
            }
    }
}
