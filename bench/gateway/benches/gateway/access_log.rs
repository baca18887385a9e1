//! What the access log costs: requests per second with it and without it, in one run.

use std::io;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::median;

use crate::evenkeel::{self, AccessLog};
use crate::throughput::{CONNECTIONS, Turn, times, turn};
use crate::upstream::Upstream;
use crate::wrk;

/// The bar is narrow.
const ROUNDS: usize = 25;

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let mut running = Vec::new();
    for access_log in [AccessLog::Off, AccessLog::Json] {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let process = evenkeel::start_logged(access_log, upstream.process.address, folder.path())?;
        wrk::run(process.address, CONNECTIONS, 1)?;
        running.push((process, folder, Vec::<Turn>::new()));
    }
    for round in 0..ROUNDS {
        // Each of them begins every other round.
        for place in 0..2 {
            let (process, _, turns) = &mut running[(round + place) % 2];
            turns.push(turn(process)?);
        }
    }
    let figure = |index: usize, of: fn(&Turn) -> f64| median(running[index].2.iter().map(of));
    bars.add("requests per second without an access log", figure(0, |turn| turn.requests_per_second), "", Bar::None);
    let part = times(&running[1].2, &running[0].2, |turn| turn.requests_per_second);
    bars.add("with one in JSON, that times", part, "", Bar::AtLeast(0.93, ""));
    let costs = [0, 1].map(|index| figure(index, |turn| turn.processor_us));
    bars.add("processor time for a request without it", costs[0], "us", Bar::None);
    bars.add("the same with it", costs[1], "us", Bar::None);
    Ok(())
}
