//! What tracing costs: requests per second without it, with one request in a hundred traced, and with all of them, in one run.

use std::io;
use std::net::SocketAddr;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{Process, free_address, median};
use tempfile::TempDir;

use crate::evenkeel::{self, Tracing};
use crate::throughput::{CONNECTIONS, Turn, times, turn};
use crate::upstream::Upstream;
use crate::{nginx, wrk};

/// More than elsewhere: the bar for one request in a hundred is narrow.
const ROUNDS: usize = 25;
const RATIOS: [f64; 3] = [0.0, 0.01, 1.0];

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let (upstream, collector) = (Upstream::start()?, Collector::start()?);
    let mut running = Vec::new();
    for ratio in RATIOS {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let tracing = (ratio > 0.0).then_some(Tracing { ratio, collector: collector.address });
        let process = evenkeel::start_traced(tracing, upstream.process.address, folder.path())?;
        wrk::run(process.address, CONNECTIONS, 1)?;
        running.push((process, folder, Vec::<Turn>::new()));
    }
    for round in 0..ROUNDS {
        // Each of them begins a round as often as the others.
        for place in 0..running.len() {
            let index = (round + place) % running.len();
            let (process, _, turns) = &mut running[index];
            turns.push(turn(process)?);
        }
    }
    let figure = |index: usize, of: fn(&Turn) -> f64| median(running[index].2.iter().map(of));
    bars.add("requests per second without tracing", figure(0, |turn| turn.requests_per_second), "", Bar::None);
    let part = |index: usize| times(&running[index].2, &running[0].2, |turn: &Turn| turn.requests_per_second);
    bars.add("with 1 % of the requests traced, that times", part(1), "", Bar::AtLeast(0.99, ""));
    bars.add("with all requests traced, that times", part(2), "", Bar::AtLeast(0.85, ""));
    let costs = [0, 1, 2].map(|index| figure(index, |turn| turn.processor_us));
    bars.add("processor time for a request without tracing", costs[0], "us", Bar::None);
    bars.add("the same with 1 % of the requests traced", costs[1], "us", Bar::None);
    bars.add("the same with all requests traced", costs[2], "us", Bar::None);
    Ok(())
}

/// A collector that costs as little as possible: it takes everything and looks at nothing.
struct Collector {
    address: SocketAddr,
    _process: Process,
    _folder: TempDir,
}

// === impl Collector ===

impl Collector {
    fn start() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let address = free_address()?;
        let server = format!(
            "server {{ listen {address}; client_max_body_size 0; keepalive_requests 100000000; keepalive_timeout 1h;
                location / {{ return 200; }} }}"
        );
        let process = nginx::run("1", &server, address, folder.path())?;
        Ok(Self { address, _process: process, _folder: folder })
    }
}
