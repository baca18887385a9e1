//! Three instances that find the seats of one service together (FL-13), beside three that share the right number.

use evenkeel_api::Preset;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_sim::report::FleetReport;
use evenkeel_sim::workload::Workload;
use evenkeel_sim::{AutoSettings, ServerSettings, run};

/// A fleet in front of the service that collapses, at three times its capacity.
#[derive(Debug)]
pub struct FleetScenario {
    workload: Workload,
}

/// What a fleet came to.
#[derive(Debug, Clone, Copy)]
pub struct FleetFigures {
    /// Requests that were done, over those of a fleet with the right number.
    pub goodput: f64,
    /// The same for instances that find a number each for itself.
    pub apart: f64,
    /// Writes to etcd a second, of each instance; ledgers apart.
    pub publications: f64,
    /// Ledgers that were written a second.
    pub ledgers: f64,
}

const RIGHT: u32 = 20;
const INSTANCES: f64 = 3.0;

// === impl FleetScenario ===

impl FleetScenario {
    /// The seconds from `from` to `to` count. Requests take 10 ms on average, on 20 slots.
    pub fn new(from: u32, to: u32) -> Self {
        let text = format!(
            "apiVersion: evenkeel.dev/v1\nkind: Workload\nmetadata: {{name: fleet}}\nspec:\n  seconds: {to}\n  warmup: {from}\n  \
             instances: 3\n  service: {{slots: 20, degradation: 0.4, sharing: processor}}\n  flows:\n  - {{name: tenant, count: 6, \
             arrivals: {{poisson: {{rate: 1000}}}}, service: {{lognormal: {{median: 8825us, sigma: 0.5}}}}, patience: 2s}}\n"
        );
        let workload = Workload::parse("fleet.yaml", text.as_bytes(), Preset::Plain);
        Self { workload: workload.unwrap_or_else(|problems| panic!("{problems}")) }
    }

    /// A fleet whose search begins at so many seats.
    #[expect(clippy::cast_precision_loss, reason = "some thousand requests")]
    pub fn measure(&self, start: u32, seed: u64) -> FleetFigures {
        let right = self.run(RIGHT, None, seed);
        let found = self.run(start, Some(AutoSettings::new(1..=400, start)), seed);
        let seconds = (self.workload.span - self.workload.warmup) as f64 / 1e9;
        FleetFigures {
            goodput: found.completed as f64 / right.completed as f64,
            apart: found.apart.completed as f64 / right.completed as f64,
            publications: found.publications as f64 / seconds / INSTANCES,
            ledgers: found.divisions as f64 / seconds,
        }
    }

    fn run(&self, seats: u32, auto: Option<AutoSettings>, seed: u64) -> FleetReport {
        let mut settings = ServerSettings::new(seats.into());
        (settings.preset, settings.borrowing, settings.auto) = (Preset::Plain, Borrowing::Immediate, auto);
        let scenario = evenkeel_sim::Scenario { settings, objects: Objects::from(Preset::Plain), applied: Vec::new() };
        let report = run(&self.workload, &scenario, seed, &mut |_| {}).report;
        report.fleet.unwrap_or_else(|| unreachable!("the workload has instances"))
    }
}
