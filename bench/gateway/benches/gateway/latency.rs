//! The 99th percentile at fixed rates, and that of one worker under full load.

use std::io;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::median;

use crate::contestant::{ClientTransport, Contestant, Running, Task};
use crate::open_loop::{self, Run};
use crate::throughput::by_turns;
use crate::upstream::Upstream;

/// In requests per second.
const RATES: [u32; 3] = [10_000, 25_000, 40_000];
const ROUNDS: usize = 5;
const ROUND_SECONDS: u32 = 2;
/// Of the two that are compared with one worker each.
const ROUNDS_OF_ONE_WORKER: usize = 9;

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let running = Contestant::start_all(Task::PassOn, ClientTransport::Plain, upstream.process.address)?;
    for rate in RATES {
        at_rate(bars, &running, rate, "")?;
    }
    drop(running);
    with_one_worker(bars, &upstream)
}

/// `suffix` goes to the names of the measures.
fn at_rate(bars: &mut Bars, running: &[Running], rate: u32, suffix: &str) -> io::Result<()> {
    let mut runs: Vec<Vec<Run>> = running.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        // Each of them begins a round as often as the others.
        for place in 0..running.len() {
            let index = (round + place) % running.len();
            runs[index].push(open_loop::run(running[index].process.address, rate, ROUND_SECONDS)?);
        }
    }
    for (contestant, runs) in running.iter().zip(&runs) {
        let unanswered = median(runs.iter().map(|run| run.unanswered as f64));
        if unanswered > 0.0 {
            let name = contestant.contestant.name();
            println!(
                "{name} cannot serve {rate} requests per second here{suffix}: {unanswered} are unanswered in the end"
            );
        }
    }
    let medians =
        |figure: fn(&Run) -> f64| -> Vec<f64> { runs.iter().map(|runs| median(runs.iter().map(figure))).collect() };
    let typical = medians(|run| run.p50_ms);
    Contestant::add_all(
        bars,
        &format!("median at {rate} requests per second{suffix}"),
        "ms",
        running,
        &typical,
        Bar::None,
    );
    let tails = medians(|run| run.p99_ms);
    // Figures with one worker each are for comparison: they tell whether a difference is due to how many threads share the cores.
    let bar = if suffix.is_empty() { Bar::TimesAtMost(1.0, tails[Contestant::NGINX]) } else { Bar::None };
    Contestant::add_all(bars, &format!("p99 at {rate} requests per second{suffix}"), "ms", running, &tails, bar);
    Ok(())
}

fn with_one_worker(bars: &mut Bars, upstream: &Upstream) -> io::Result<()> {
    let start = |contestant: Contestant| {
        contestant.start(Task::PassOnWithOneWorker, ClientTransport::Plain, upstream.process.address)
    };
    let running = [start(Contestant::Evenkeel)?, start(Contestant::Nginx)?];
    at_rate(bars, &running, RATES[0], ", one worker")?;
    let turns = by_turns([&running[0].process, &running[1].process], ROUNDS_OF_ONE_WORKER)?;
    let tails: Vec<f64> = turns.iter().map(|turns| median(turns.iter().map(|turn| turn.p99_ms))).collect();
    let bar = Bar::TimesAtMost(1.0, tails[Contestant::NGINX]);
    Contestant::add_all(bars, "p99 under full load, one worker", "ms", &running, &tails, bar);
    let rates: Vec<f64> = turns.iter().map(|turns| median(turns.iter().map(|turn| turn.requests_per_second))).collect();
    Contestant::add_all(bars, "requests per second, one worker", "", &running, &rates, Bar::None);
    Ok(())
}
