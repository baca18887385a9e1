//! Requests per second and what each costs, with wrk on 64 connections.

use std::io;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{Process, median};

use crate::contestant::{ClientTransport, Contestant, Task};
use crate::upstream::Upstream;
use crate::wrk;

pub(crate) const CONNECTIONS: usize = 64;
/// Everybody has a turn in each round, so that what disturbs the machine disturbs all alike.
const ROUNDS: usize = 9;
const ROUND_SECONDS: u32 = 2;

/// What one turn has found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Turn {
    pub(crate) requests_per_second: f64,
    pub(crate) p99_ms: f64,
    /// What a request costs the proxy, in microseconds on a processor. A busy machine changes it less than the others.
    pub(crate) processor_us: f64,
}

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let running = Contestant::start_all(Task::PassOn, ClientTransport::Plain, upstream.process.address)?;
    for contestant in &running {
        wrk::run(contestant.process.address, CONNECTIONS, 1)?;
    }
    let mut turns: Vec<Vec<Turn>> = running.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        // Each of them begins a round as often as the others.
        for place in 0..running.len() {
            let index = (round + place) % running.len();
            turns[index].push(turn(&running[index].process)?);
        }
    }
    let medians = |figure: fn(&Turn) -> f64| turns.iter().map(|turns| median(turns.iter().map(figure))).collect();
    let rates: Vec<f64> = medians(|turn| turn.requests_per_second);
    let bar = Bar::TimesAtLeast(1.05, rates[Contestant::NGINX]);
    Contestant::add_all(bars, "requests per second", "", &running, &rates, bar);
    let costs: Vec<f64> = medians(|turn| turn.processor_us);
    let bar = Bar::TimesAtMost(0.93, costs[Contestant::NGINX]);
    Contestant::add_all(bars, "processor time for a request", "us", &running, &costs, bar);
    Ok(())
}

/// How many times as large a figure is with something as without it: the median of the rounds. The two turns of a round are
/// neighbours in time, so that this tells differences that are smaller than those from one round to another.
pub(crate) fn times<T>(with: &[T], without: &[T], figure: fn(&T) -> f64) -> f64 {
    median(with.iter().zip(without).map(|(with, without)| figure(with) / figure(without)))
}

/// Two processes by turns; each of them begins every other round.
pub(crate) fn by_turns(processes: [&Process; 2], rounds: usize) -> io::Result<[Vec<Turn>; 2]> {
    for process in processes {
        wrk::run(process.address, CONNECTIONS, 1)?;
    }
    let mut turns = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for place in 0..2 {
            let index = (round + place) % 2;
            turns[index].push(turn(processes[index])?);
        }
    }
    Ok(turns)
}

fn turn(process: &Process) -> io::Result<Turn> {
    let before = process.processor_time()?;
    let run = wrk::run(process.address, CONNECTIONS, ROUND_SECONDS)?;
    let processor = process.processor_time()?.saturating_sub(before);
    Ok(Turn {
        requests_per_second: run.requests_per_second,
        p99_ms: run.p99_ms,
        processor_us: processor.as_secs_f64() * 1e6 / run.requests,
    })
}
