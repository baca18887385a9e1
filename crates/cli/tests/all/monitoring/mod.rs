//! What operators monitor Evenkeel with: the Prometheus rules and the Grafana dashboard of `deploy/`, and the metrics that they are
//! about. Prometheus and its promtool must be installed; `cargo xtask setup` does that.

mod grafana;
mod live;
mod outage;
mod pages;
mod promql;
mod promtool;
mod rules;
mod scrape;
mod station;

use std::fs;
use std::path::PathBuf;

/// What only an instance of a fleet shows. The tests of fleets find all of it on the page of one.
pub(crate) const OF_FLEET: [(&str, &[&str]); 10] = [
    ("evenkeel_fleet_call_seconds", &[]),
    ("evenkeel_fleet_conflicts_total", &[]),
    ("evenkeel_fleet_failed_calls_total", &[]),
    ("evenkeel_fleet_footing", &["footing"]),
    ("evenkeel_fleet_granted_seats", &[]),
    ("evenkeel_fleet_held_seats", &[]),
    ("evenkeel_fleet_instances", &[]),
    ("evenkeel_fleet_round_seconds", &[]),
    ("evenkeel_fleet_seats", &[]),
    ("evenkeel_fleet_seats_in_use", &[]),
];

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

fn read(path: &str) -> String {
    // A checkout may have other line ends than the repository.
    fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}")).replace("\r\n", "\n")
}
