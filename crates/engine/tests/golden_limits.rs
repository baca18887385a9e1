//! Replays every recorded sequence of configurations, and compares the limits that follow from each (CL-2 to CL-17).
//!
//! `maxSeats` belongs to work estimates and is not compared here.

mod digested;

use std::collections::BTreeMap;

use digested::Levels;
use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::limits::nominal_sum;
use evenkeel_engine::time::Instant;
use evenkeel_recorded::{golden, rows};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    server_concurrency_limit: i64,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Step {
    priority_levels: Vec<PriorityLevelConfiguration>,
    #[serde(rename = "nominalCLSum")]
    nominal_sum: i64,
    levels: BTreeMap<String, Limits>,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Limits {
    #[serde(rename = "nominalCL")]
    nominal: i64,
    #[serde(rename = "minCL")]
    min: i64,
    #[serde(rename = "maxCL")]
    max: i64,
    #[serde(rename = "currentCL")]
    current: i64,
}

#[test]
fn limits_of_every_configuration_are_those_of_kubernetes() {
    let Some(folder) = golden() else { return };
    let file = folder.join("engine/limits.jsonl");
    let recorded: Vec<Row> = rows(&file);
    let mut compared = 0;
    for (row, recorded) in recorded.iter().enumerate() {
        let mut levels = Levels::new(recorded.server_concurrency_limit);
        for (step, expected) in recorded.steps.iter().enumerate() {
            levels.digest(Instant::default(), &expected.priority_levels);
            let actual = (nominal_sum(levels.by_name.values().map(|level| &level.limits)), limits(&levels));
            let expected = (expected.nominal_sum, &expected.levels);
            assert!(
                expected == (actual.0, &actual.1),
                "{}, row {}, step {step}:\n  recorded {expected:?}\n  actual   {actual:?}",
                file.display(),
                row + 1
            );
            compared += 1;
        }
    }
    assert_eq!((recorded.len(), compared), (150, 248));
}

fn limits(levels: &Levels) -> BTreeMap<String, Limits> {
    let limits = levels.by_name.iter().map(|(name, level)| {
        let limits = Limits {
            nominal: level.limits.nominal,
            min: level.limits.min,
            max: level.limits.max,
            current: level.current.expect("a digest"),
        };
        (name.clone(), limits)
    });
    limits.collect()
}
