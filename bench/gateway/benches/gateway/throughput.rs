//! Requests per second and their 99th percentile, with wrk on 64 connections.

use std::io;

use evenkeel_bars::{Bar, Bars};

use crate::contestant::{Contestant, Task};
use crate::figures::median;
use crate::upstream::Upstream;
use crate::wrk::{self, Run};

const CONNECTIONS: usize = 64;
/// Everybody has a turn in each round, so that what disturbs the machine disturbs all alike.
const ROUNDS: usize = 7;
const ROUND_SECONDS: u32 = 2;

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let running = Contestant::start_all(Task::PassOn, upstream.process.address)?;
    for contestant in &running {
        wrk::run(contestant.process.address, CONNECTIONS, 1)?;
    }
    let mut runs: Vec<Vec<Run>> = running.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUNDS {
        for (contestant, runs) in running.iter().zip(&mut runs) {
            runs.push(wrk::run(contestant.process.address, CONNECTIONS, ROUND_SECONDS)?);
        }
    }
    let rates: Vec<f64> = runs.iter().map(|runs| median(runs.iter().map(|run| run.requests_per_second))).collect();
    let tails: Vec<f64> = runs.iter().map(|runs| median(runs.iter().map(|run| run.p99_ms))).collect();
    for (index, contestant) in Contestant::ALL.into_iter().enumerate() {
        let is_ours = contestant == Contestant::Evenkeel;
        let bar = if is_ours { Bar::TimesAtLeast(1.0, rates[1]) } else { Bar::None };
        bars.add(format!("requests per second, {}", contestant.name()), rates[index], "", bar);
    }
    for (index, contestant) in Contestant::ALL.into_iter().enumerate() {
        let is_ours = contestant == Contestant::Evenkeel;
        let bar = if is_ours { Bar::TimesAtMost(1.2, tails[1]) } else { Bar::None };
        bars.add(format!("p99 in that run, {}", contestant.name()), tails[index], "ms", bar);
    }
    Ok(())
}
