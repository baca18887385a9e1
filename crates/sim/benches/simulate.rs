//! The bars of the simulator (TL-30): how fast it is, by the time of the processor, so that what else the machine does matters little.

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_api::decode::{Manifest, Strictness};
use evenkeel_bars::{Bar, Bars};
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_sim::workload::Workload;
use evenkeel_sim::{Scenario, ServerSettings, run};
use rustix::time::{ClockId, clock_gettime};

const OBJECTS: &str = include_str!("../../../examples/tenants.yaml");

/// Fifty clients that send 5,000 requests a second together.
const OPEN: &str = "
apiVersion: evenkeel.dev/v1
kind: Workload
metadata: {name: open}
spec:
  seconds: SECONDS
  flows:
  - {name: tenants, count: 50, groups: [tenants], seats: 1, arrivals: {poisson: {rate: 100}}, service: {exponential: 10ms}}
";

/// As many requests as a level with 26 seats can take.
const CLOSED: &str = "
apiVersion: evenkeel.dev/v1
kind: Workload
metadata: {name: closed}
spec:
  seconds: SECONDS
  flows:
  - {name: elephants, count: 4, groups: [tenants], seats: 1, arrivals: {closed: {clients: 40}}, service: {uniform: [8ms, 12ms]}}
  - {name: mice, count: 20, groups: [tenants], seats: 1, arrivals: {poisson: {rate: 5}}, service: {uniform: [8ms, 12ms]}}
";

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    let million = |bar: f64| Bar::AtLeast(bar, "million events/s");
    for (name, workload, seats, borrowing) in [
        ("simulate: open arrivals, periodic borrowing", OPEN, 70, Borrowing::Periodic),
        ("simulate: open arrivals, immediate borrowing", OPEN, 70, Borrowing::Immediate),
        ("simulate: a saturated level, periodic borrowing", CLOSED, 26, Borrowing::Periodic),
        ("simulate: a saturated level, immediate borrowing", CLOSED, 26, Borrowing::Immediate),
    ] {
        bars.measure(name, "million events/s", || {
            let (seconds, events) = simulate(workload, 600, seats, borrowing);
            (events / seconds / 1e6, million(5.0))
        });
    }
    bars.measure("simulate: an hour at 5,000 requests a second", "s", || {
        (simulate(OPEN, 3600, 70, Borrowing::Periodic).0, Bar::AtMost(15.0, "s"))
    });
    bars.print("The simulator");
}

/// How long a run takes, and how many events it has.
#[expect(clippy::cast_precision_loss, reason = "figures")]
fn simulate(workload: &str, seconds: u32, seats: i64, borrowing: Borrowing) -> (f64, f64) {
    let text = workload.replace("SECONDS", &seconds.to_string());
    let workload = Workload::parse("workload.yaml", text.as_bytes(), Preset::Kubernetes).expect("a workload");
    let manifest = Manifest::read("tenants.yaml", OBJECTS.as_bytes(), Strictness::Strict).expect("objects");
    let objects: Objects = manifest.entries.into_iter().map(|entry| entry.object).collect();
    let mut settings = ServerSettings::new(seats);
    settings.borrowing = borrowing;
    let scenario = Scenario { settings, objects: objects.with_mandatory_levels(), applied: Vec::new() };
    let start = processor_time();
    let report = run(&workload, &scenario, 1, &mut |_| {}).report;
    (processor_time().saturating_sub(start).as_secs_f64(), report.events as f64)
}

fn processor_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).expect("a time since the thread began")
}
