//! Queues per flow (chapter 2 of the specification): small flows beside greedy ones.

use evenkeel_bars::{Bar, Bars};
use evenkeel_engine::queue_set::{Mode, QueueSetConfig};
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

use crate::simulation::{Arrivals, Client, Contestant, Served, Service};

const SEATS: i64 = 26;

/// Adds the rows of this chapter.
pub(crate) fn measure(bars: &mut Bars) {
    small_beside_greedy(bars);
}

/// The p99 of 16 small flows of 5 requests a second beside greedy ones with 640 requests outstanding in all.
fn small_beside_greedy(bars: &mut Bars) {
    for greedy in [1, 4, 16] {
        for (name, contestant) in contestants() {
            bars.measure(&format!("p99 of small flows beside {greedy} greedy, {name}"), "ms", || {
                (percentile(small_latencies(contestant, greedy), 0.99), Bar::None)
            });
        }
    }
}

fn contestants() -> [(&'static str, Contestant); 2] {
    [("FIFO", Contestant::Fifo { seats: 26 }), ("shuffle-sharded", Contestant::Level(faithful()))]
}

/// The level of Kubernetes' suggested configuration: 64 queues, hands of 8.
fn faithful() -> QueueSetConfig {
    QueueSetConfig { mode: Mode::queue(64, 8, 50).expect("a valid deal"), concurrency_limit: SEATS }
}

fn small_latencies(contestant: Contestant, greedy: usize) -> Vec<Nanos> {
    let service = Service::Between(8 * MILLISECOND, 12 * MILLISECOND);
    let greedy_flows =
        (0..greedy).map(|number| Client::new(format!("greedy-{number}"), Arrivals::Outstanding(640 / greedy), service));
    let small_flows = (0..16).map(|number| Client::new(format!("small-{number}"), Arrivals::PerSecond(5.0), service));
    let clients: Vec<_> = greedy_flows.chain(small_flows).collect();
    let runs = [11, 222, 3333, 44444].map(|seed| contestant.run(&clients, 20 * SECOND, seed));
    runs.iter()
        .flat_map(|served| served[greedy..].iter().flat_map(|Served { latencies, .. }| latencies))
        .copied()
        .collect()
}

/// In milliseconds.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a figure")]
fn percentile(mut latencies: Vec<Nanos>, share: f64) -> f64 {
    latencies.sort_unstable();
    let index = ((latencies.len() as f64 * share) as usize).min(latencies.len() - 1);
    latencies[index] as f64 / MILLISECOND as f64
}
