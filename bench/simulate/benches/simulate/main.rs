//! The simulator beside the gateway: both get the same workload, with the same arrivals and service times, and percentiles and
//! shares of seats are compared.
//!
//! This runs in real time, and what else the machine does shows in the figures of the gateway.

mod live;
mod scenario;
mod upstream;

use anyhow::Result;
use evenkeel_bars::{Bar, Bars};
use scenario::{SCENARIOS, Scenario};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<()> {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    for scenario in SCENARIOS {
        if bars.wants(&format!("simulate beside the gateway: {}", scenario.name)) {
            compare(&mut bars, &scenario)?;
        }
    }
    bars.print("The simulator beside the gateway");
    Ok(())
}

fn compare(bars: &mut Bars, scenario: &Scenario) -> Result<()> {
    let simulated = scenario.simulate()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let live = runtime.block_on(live::run(scenario))?;
    let name = scenario.name;
    let sum = |shares: &mut dyn Iterator<Item = f64>| shares.sum::<f64>();
    let simulated_sum = sum(&mut simulated.iter().map(|row| row.seat_seconds));
    let live_sum = sum(&mut live.iter().map(|row| row.seat_seconds));
    for (simulated, live) in simulated.iter().zip(&live) {
        let row = format!("simulate beside the gateway: {name}, {}", simulated.name);
        let difference = 100.0 * (simulated.p99_ms / live.p99_ms - 1.0).abs();
        bars.add(format!("{row}: p99 of the gateway"), live.p99_ms, "ms", Bar::None);
        bars.add(format!("{row}: p99, difference"), difference, "%", Bar::AtMost(10.0, "%"));
        let [one, other] = [simulated.seat_seconds / simulated_sum, live.seat_seconds / live_sum];
        bars.add(format!("{row}: share of seats of the gateway"), 100.0 * other, "%", Bar::None);
        bars.add(
            format!("{row}: share, difference"),
            100.0 * (one - other).abs(),
            "points",
            Bar::AtMost(1.0, "points"),
        );
    }
    Ok(())
}
