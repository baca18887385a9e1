//! Replays every recorded course of demand, and compares statistics and limits after each period (CL-8 to CL-17).

use crate::level_table;

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_api::v1::{PriorityLevelConfiguration, PriorityLevelEnablement};
use evenkeel_engine::controller::{ControlledLevel, Controller, Objects};
use evenkeel_engine::time::Instant;
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use level_table::LevelTable;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    server_concurrency_limit: i64,
    priority_levels: Vec<PriorityLevelConfiguration>,
    initial: BTreeMap<String, BorrowingState>,
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
    result: BTreeMap<String, BorrowingState>,
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
struct BorrowingState {
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

/// What a course of demand is replayed on.
struct Replay {
    controller: Controller,
    table: LevelTable,
}

#[test]
fn limits_follow_demand_as_in_kubernetes() {
    let recorded = golden_rows::<Row>(Golden::Borrowing);
    let mut periods = 0;
    for (file, rows) in &recorded {
        for (row, recorded) in rows.iter().enumerate() {
            let place = format!("{}, row {} ({})", file.display(), row + 1, recorded.name);
            let mut replay = Replay::new(recorded);
            replay.compare(&recorded.initial).assert(format_args!("{place}, start"));
            for (number, period) in recorded.periods.iter().enumerate() {
                replay.period(period);
                let mut comparison = replay.compare(&period.result);
                let fair_fraction = replay.controller.fair_fraction();
                comparison.close("fair fraction", period.fair_frac, fair_fraction, TOLERANCE_AFTER_CANCELLING);
                comparison.assert(format_args!("{place}, period {number}"));
                periods += 1;
            }
        }
    }
    compared("periods of borrowing", periods);
}

fn instant(nanos: &str) -> Instant {
    Instant::from_nanos(nanos.parse().expect("a number"))
}

// === impl Replay ===

impl Replay {
    fn new(row: &Row) -> Self {
        let mut table = LevelTable::default();
        let (controller, _) = Controller::new(row.server_concurrency_limit, &mut table, Instant::default());
        let mut replay = Self { controller, table };
        replay.configure(&row.priority_levels, Instant::default());
        replay
    }

    fn configure(&mut self, levels: &[PriorityLevelConfiguration], now: Instant) {
        let priority_levels = levels.iter().cloned().map(Arc::new).collect();
        self.controller.apply(Objects { priority_levels, ..Objects::default() }, &mut self.table, now);
    }

    fn period(&mut self, period: &Period) {
        for demand in &period.demand {
            let level = self.controller.level(&demand.level).expect("a level");
            self.table.demand(level.id(), instant(&demand.t), demand.seats);
        }
        match period.op {
            Operation::Adjust => self.controller.adjust(&mut self.table, instant(&period.end)),
            Operation::Reconfigure => self.configure(&period.priority_levels, instant(&period.end)),
        }
    }

    fn compare(&self, expected: &BTreeMap<String, BorrowingState>) -> SideBySide {
        let mut comparison = SideBySide::default();
        let names: Vec<_> = self.controller.levels().map(|(name, _)| name).collect();
        comparison.same("levels", &expected.keys().map(String::as_str).collect::<Vec<_>>(), &names);
        for (name, expected) in expected {
            if let Some(level) = self.controller.level(name) {
                expected.compare(name, &BorrowingState::of(level), &mut comparison);
                let told = self.table.concurrency_limit(level.id());
                comparison.same(format_args!("{name} was told"), &expected.current, &told);
            }
        }
        comparison
    }
}

// === impl BorrowingState ===

impl BorrowingState {
    fn of(level: &ControlledLevel) -> Self {
        let is_exempt = level.object().spec.enablement == PriorityLevelEnablement::Exempt;
        Self {
            high_watermark: level.statistics().high_watermark,
            avg: level.statistics().average,
            std_dev: level.statistics().deviation,
            smoothed: level.statistics().smoothed,
            target: (!is_exempt).then_some(level.target()),
            nominal: level.limits().nominal,
            min: level.limits().min,
            max: level.limits().max,
            current: level.current_limit(),
        }
    }

    fn compare(&self, level: &str, actual: &Self, comparison: &mut SideBySide) {
        let name = |what: &str| format!("{level} {what}");
        comparison.same(name("high watermark"), &self.high_watermark, &actual.high_watermark);
        comparison.close(name("average"), self.avg, actual.avg, TOLERANCE);
        comparison.close(name("deviation"), self.std_dev, actual.std_dev, TOLERANCE_AFTER_CANCELLING);
        comparison.close(name("smoothed"), self.smoothed, actual.smoothed, TOLERANCE_AFTER_CANCELLING);
        comparison.close_or_absent(name("target"), self.target, actual.target, TOLERANCE_AFTER_CANCELLING);
        comparison.same(name("nominal"), &self.nominal, &actual.nominal);
        comparison.same(name("min"), &self.min, &actual.min);
        comparison.same(name("max"), &self.max, &actual.max);
        comparison.same(name("current"), &self.current, &actual.current);
    }
}
