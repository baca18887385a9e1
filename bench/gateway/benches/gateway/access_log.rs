//! What the access log costs: requests per second with it and without it, in one run.

use std::io;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::median;
use tempfile::TempDir;

use crate::evenkeel::{self, AccessLog};
use crate::throughput::{Turn, by_turns, times};
use crate::upstream::Upstream;

/// The bar is narrow.
const ROUNDS: usize = 25;

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let (upstream, folders) = (Upstream::start()?, [tempfile::tempdir()?, tempfile::tempdir()?]);
    let start = |log, folder: &TempDir| evenkeel::start_logged(log, upstream.process.address, folder.path());
    let (without, with) = (start(AccessLog::Off, &folders[0])?, start(AccessLog::Json, &folders[1])?);
    let turns = by_turns([&without, &with], ROUNDS)?;
    let figure = |index: usize, of: fn(&Turn) -> f64| median(turns[index].iter().map(of));
    bars.add("requests per second without an access log", figure(0, |turn| turn.requests_per_second), "", Bar::None);
    let part = times(&turns[1], &turns[0], |turn| turn.requests_per_second);
    bars.add("with one in JSON, that times", part, "", Bar::AtLeast(0.93, ""));
    let costs = [0, 1].map(|index| figure(index, |turn| turn.processor_us));
    bars.add("processor time for a request without it", costs[0], "us", Bar::None);
    bars.add("the same with it", costs[1], "us", Bar::None);
    Ok(())
}
