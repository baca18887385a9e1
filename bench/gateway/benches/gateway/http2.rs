//! Requests per second over HTTP/2 and TLS, with h2load on 32 connections of 10 streams. The upstream speaks HTTP/1.1.

use std::io;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::median;

use crate::contestant::{ClientTransport, Contestant, Running, Task};
use crate::h2load;
use crate::upstream::Upstream;

const CONNECTIONS: usize = 32;
const STREAMS: usize = 10;
const ROUNDS: usize = 9;
const ROUND_SECONDS: u32 = 2;

/// What one turn has found: requests per second, and microseconds on a processor for each.
type Turn = (f64, f64);

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    if !evenkeel_process::is_installed("h2load") {
        println!("HTTP/2 is left out: `h2load` is not installed; `cargo xtask bench` tries to");
        return Ok(());
    }
    let upstream = Upstream::start()?;
    let running = Contestant::start_all(Task::PassOn, ClientTransport::Tls, upstream.process.address)?;
    for contestant in &running {
        h2load::run(contestant.process.address, CONNECTIONS, STREAMS, 1)?;
    }
    let mut turns: Vec<Vec<Turn>> = running.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        // Each of them begins a round as often as the others.
        for place in 0..running.len() {
            let index = (round + place) % running.len();
            turns[index].push(turn(&running[index])?);
        }
    }
    let medians = |figure: fn(&Turn) -> f64| turns.iter().map(|turns| median(turns.iter().map(figure))).collect();
    let rates: Vec<f64> = medians(|turn| turn.0);
    let bar = Bar::TimesAtLeast(1.15, rates[Contestant::NGINX]);
    Contestant::add_all(bars, "requests per second, HTTP/2 and TLS", "", &running, &rates, bar);
    let costs: Vec<f64> = medians(|turn| turn.1);
    Contestant::add_all(bars, "processor time for a request, HTTP/2 and TLS", "us", &running, &costs, Bar::None);
    Ok(())
}

fn turn(running: &Running) -> io::Result<Turn> {
    let before = running.process.processor_time()?;
    let run = h2load::run(running.process.address, CONNECTIONS, STREAMS, ROUND_SECONDS)?;
    let processor = running.process.processor_time()?.saturating_sub(before);
    Ok((run.requests_per_second, processor.as_secs_f64() * 1e6 / run.requests))
}
