//! Replays every recorded sequence of configurations, and compares the limits that follow from each (CL-2 to CL-17,
//! WE-4).

use crate::level_table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::controller::{Controller, Objects};
use evenkeel_engine::time::Instant;
use evenkeel_recorded::{Golden, SideBySide, compared, golden_rows};
use level_table::LevelTable;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Row {
    server_concurrency_limit: i64,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Step {
    priority_levels: Vec<PriorityLevelConfiguration>,
    #[serde(rename = "nominalCLSum")]
    nominal_sum: i64,
    levels: BTreeMap<String, Limits>,
}

#[derive(Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Limits {
    #[serde(rename = "nominalCL")]
    nominal: i64,
    #[serde(rename = "minCL")]
    min: i64,
    #[serde(rename = "maxCL")]
    max: i64,
    #[serde(rename = "currentCL")]
    current: i64,
    #[serde(rename = "maxSeats")]
    seat_cap: u32,
}

#[test]
fn limits_of_every_configuration_are_those_of_kubernetes() {
    let recorded = golden_rows::<Row>(Golden::Limits);
    let now = Instant::default();
    let mut steps = 0;
    for (file, rows) in &recorded {
        for (row, recorded) in rows.iter().enumerate() {
            let mut table = LevelTable::default();
            let (mut controller, _) = Controller::new(recorded.server_concurrency_limit, &mut table, now);
            for (step, expected) in recorded.steps.iter().enumerate() {
                let priority_levels = expected.priority_levels.iter().cloned().map(Arc::new).collect();
                controller.apply(Objects { priority_levels, ..Objects::default() }, &mut table, now);
                let place = format!("{}, row {}, step {step}", file.display(), row + 1);
                compare(expected, &controller, &table).assert(place);
                steps += 1;
            }
        }
    }
    compared("configurations with their limits", steps);
}

fn compare(expected: &Step, controller: &Controller, table: &LevelTable) -> SideBySide {
    let mut comparison = SideBySide::default();
    comparison.same("sum of nominal limits", &expected.nominal_sum, &controller.nominal_sum());
    let actual = limits(controller, table);
    for name in expected.levels.keys().chain(actual.keys()).collect::<BTreeSet<_>>() {
        comparison.same(name, &expected.levels.get(name), &actual.get(name));
    }
    comparison
}

fn limits(controller: &Controller, table: &LevelTable) -> BTreeMap<String, Limits> {
    let limits = controller.levels().map(|(name, level)| {
        assert_eq!(table.concurrency_limit(level.id()), level.current_limit(), "{name} was not told of its limit");
        let limits = Limits {
            nominal: level.limits().nominal,
            min: level.limits().min,
            max: level.limits().max,
            current: level.current_limit(),
            seat_cap: level.seat_cap().unwrap_or(0),
        };
        (name.to_owned(), limits)
    });
    limits.collect()
}
