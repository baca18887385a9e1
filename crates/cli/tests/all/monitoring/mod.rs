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

/// A file of the repository.
fn file(path: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(path)
}

fn read(path: &str) -> String {
    // A checkout may have other line ends than the repository.
    fs::read_to_string(file(path)).unwrap_or_else(|error| panic!("{path}: {error}")).replace("\r\n", "\n")
}
