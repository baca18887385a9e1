//! The three scenarios, and how they are simulated.

use anyhow::Result;
use evenkeel_api::Preset;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_sim::workload::Workload;
use evenkeel_sim::{ServerSettings, run};

/// A workload and a configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    workload: &'static str,
    pub(crate) objects: &'static str,
    pub(crate) borrowing: Borrowing,
}

/// What a row of the workload got.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) p99_ms: f64,
    /// Its part of all seats that were used, in percent.
    pub(crate) share: f64,
}

pub(crate) const SEATS: u32 = 20;
pub(crate) const SEED: u64 = 1;

/// Requests take long, so that what the machine does meanwhile matters little.
const ONE_LEVEL: &str = "
apiVersion: evenkeel.dev/v1
kind: Workload
metadata: {name: one-level}
spec:
  seconds: 30
  warmup: 4
  flows:
  - {name: greedy, count: 3, groups: [tenants], seats: 1, arrivals: {closed: {clients: 30}}, service: {uniform: [150ms, 250ms]}, patience: 60s}
  - {name: polite, count: 8, groups: [tenants], seats: 1, arrivals: {poisson: {rate: 2}}, service: {uniform: [150ms, 250ms]}, patience: 60s}
";

const TWO_LEVELS: &str = "
apiVersion: evenkeel.dev/v1
kind: Workload
metadata: {name: two-levels}
spec:
  seconds: 30
  warmup: 4
  flows:
  - {name: batch, count: 4, groups: [batch], seats: 1, arrivals: {closed: {clients: 15}}, service: {uniform: [150ms, 250ms]}, patience: 60s}
  - {name: people, count: 6, groups: [people], seats: 1, arrivals: {closed: {clients: 2, think: 100ms}}, service: {uniform: [150ms, 250ms]}, patience: 60s}
";

pub(crate) const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "a queue for each flow",
        workload: ONE_LEVEL,
        objects: include_str!("per-flow.yaml"),
        borrowing: Borrowing::Immediate,
    },
    Scenario {
        name: "shuffle-sharded queues",
        workload: ONE_LEVEL,
        objects: include_str!("shuffle-sharded.yaml"),
        borrowing: Borrowing::Periodic,
    },
    Scenario {
        name: "two levels that borrow",
        workload: TWO_LEVELS,
        objects: include_str!("two-levels.yaml"),
        borrowing: Borrowing::Immediate,
    },
];

// === impl Scenario ===

impl Scenario {
    pub(crate) fn workload(&self) -> Result<Workload> {
        Ok(Workload::parse(self.name, self.workload.as_bytes(), Preset::Plain)?)
    }

    pub(crate) fn simulate(&self) -> Result<Vec<Row>> {
        let manifest = Manifest::read_for(Preset::Plain, self.name, self.objects.as_bytes(), Strictness::Strict)?;
        let objects: Objects = manifest.entries.into_iter().map(|entry| entry.object).collect();
        let mut settings = ServerSettings::new(i64::from(SEATS));
        (settings.preset, settings.borrowing) = (Preset::Plain, self.borrowing);
        let scenario =
            evenkeel_sim::Scenario { settings, objects: objects.with_mandatory_levels(), applied: Vec::new() };
        let report = run(&self.workload()?, &scenario, SEED, &mut |_| {}).report;
        let all: f64 = report.flows.iter().map(|flow| flow.figures.seat_seconds).sum();
        let row = |flow: &evenkeel_sim::report::FlowReport| Row {
            name: flow.name.clone(),
            p99_ms: flow.figures.total.p99,
            share: 100.0 * flow.figures.seat_seconds / all,
        };
        Ok(report.flows.iter().map(row).collect())
    }
}
