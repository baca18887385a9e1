//! What tracing costs: requests per second without it, with one request in a hundred traced, and with all of them, in one run.

use std::io;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{Process, free_address, median};
use tempfile::TempDir;

use crate::evenkeel::{self, Switchable, Tracing};
use crate::throughput::{CONNECTIONS, Turn, by_turns, times};
use crate::upstream::Upstream;
use crate::{nginx, wrk};

const ROUNDS: usize = 15;
/// The bar for one request in a hundred is narrower than the difference between two gateways that do the same, or between two
/// turns of one.
const SWITCHES: usize = 400;
const WINDOW: Duration = Duration::from_millis(100);
const SETTLE: Duration = Duration::from_millis(20);

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let (upstream, collector) = (Upstream::start()?, Collector::start()?);
    some_traced(bars, &upstream, &collector)?;
    all_traced(bars, &upstream, &collector)
}

/// One gateway, whose settings change while the same connections send requests. Each short window with tracing is compared with
/// its two neighbours without. The same is done with windows in which nothing is traced either: this says what the machine adds.
fn some_traced(bars: &mut Bars, upstream: &Upstream, collector: &Collector) -> io::Result<()> {
    let mut gateway = Switchable::start(upstream.process.address)?;
    let load = wrk::Load::start(gateway.process.address, CONNECTIONS)?;
    sleep(Duration::from_secs(1));
    let tracing = Tracing { ratio: 0.01, collector: collector.address };
    let (mut untraced, mut traced) = (Vec::new(), Vec::new());
    let mut before = window(&mut gateway, None)?;
    for _ in 0..SWITCHES {
        for (setting, ratios) in [(Some(tracing), &mut traced), (None, &mut untraced)] {
            let rate = window(&mut gateway, setting)?;
            let after = window(&mut gateway, None)?;
            ratios.push(2.0 * rate / (before + after));
            before = after;
        }
    }
    drop(load);
    bars.add("requests per second without tracing, times those of its neighbours", median(untraced), "", Bar::None);
    bars.add("with 1 % of the requests traced, times", median(traced), "", Bar::AtLeast(0.99, ""));
    Ok(())
}

/// Requests per second in a window with this setting.
fn window(gateway: &mut Switchable, tracing: Option<Tracing>) -> io::Result<f64> {
    gateway.trace(tracing)?;
    sleep(SETTLE);
    let (start, first) = (Instant::now(), gateway.requests()?);
    sleep(WINDOW);
    let (time, last) = (start.elapsed(), gateway.requests()?);
    Ok((last - first) / time.as_secs_f64())
}

/// Two gateways by turns. A turn is long, so that it pays for the export of its spans.
fn all_traced(bars: &mut Bars, upstream: &Upstream, collector: &Collector) -> io::Result<()> {
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let start = |tracing, folder: &TempDir| evenkeel::start_traced(tracing, upstream.process.address, folder.path());
    let tracing = Tracing { ratio: 1.0, collector: collector.address };
    let (without, with) = (start(None, &folders[0])?, start(Some(tracing), &folders[1])?);
    let turns = by_turns([&without, &with], ROUNDS)?;
    let figure = |index: usize, of: fn(&Turn) -> f64| median(turns[index].iter().map(of));
    bars.add("requests per second without tracing", figure(0, |turn| turn.requests_per_second), "", Bar::None);
    let part = times(&turns[1], &turns[0], |turn: &Turn| turn.requests_per_second);
    bars.add("with all requests traced, that times", part, "", Bar::AtLeast(0.85, ""));
    let costs = [0, 1].map(|index| figure(index, |turn| turn.processor_us));
    bars.add("processor time for a request without tracing", costs[0], "us", Bar::None);
    bars.add("the same with all requests traced", costs[1], "us", Bar::None);
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
