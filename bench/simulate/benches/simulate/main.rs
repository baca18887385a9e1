//! The simulator beside the gateway: both get the same workload, with the same arrivals and service times, and percentiles and
//! shares of seats are compared.
//!
//! This runs in real time, and what else the machine does shows in the figures of the gateway.

mod live;
mod scenario;
mod upstream;

use anyhow::Result;
use evenkeel_bars::{Bar, Bars};
use evenkeel_process::median;
use scenario::{Row, SCENARIOS, Scenario};

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

/// The gateway runs so often; the median of its figures counts, since what else the machine does shows in each of them.
const ROUNDS: usize = 3;

fn compare(bars: &mut Bars, scenario: &Scenario) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let rounds: Vec<Vec<Row>> = (0..ROUNDS).map(|_| runtime.block_on(live::run(scenario))).collect::<Result<_>>()?;
    for (index, simulated) in scenario.simulate()?.into_iter().enumerate() {
        let Row { name, p99_ms, share } = simulated;
        let row = format!("simulate beside the gateway: {}, {name}", scenario.name);
        let live = |of: fn(&Row) -> f64| median(rounds.iter().map(|rows| of(&rows[index])));
        let (live_p99_ms, live_share) = (live(|row| row.p99_ms), live(|row| row.share));
        let difference = 100.0 * (p99_ms / live_p99_ms - 1.0).abs();
        bars.add(format!("{row}: p99 of the gateway"), live_p99_ms, "ms", Bar::None);
        bars.add(format!("{row}: p99, difference"), difference, "%", Bar::AtMost(10.0, "%"));
        bars.add(format!("{row}: share of seats of the gateway"), live_share, "%", Bar::None);
        bars.add(format!("{row}: share, difference"), (share - live_share).abs(), "points", Bar::AtMost(1.0, "points"));
    }
    Ok(())
}
