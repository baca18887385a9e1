//! What a shadow and the flight recorder cost the gateway: requests per second with and without, in neighbouring windows of one run.

use std::io;
use std::thread::sleep;
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::median;

use crate::evenkeel::{Beside, Switchable};
use crate::throughput::CONNECTIONS;
use crate::upstream::Upstream;
use crate::wrk;

const SWITCHES: usize = 60;
const WINDOW: Duration = Duration::from_millis(300);
const SETTLE: Duration = Duration::from_millis(50);

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let mut gateway = Switchable::start(upstream.process.address)?;
    let load = wrk::Load::start(gateway.process.address, CONNECTIONS)?;
    sleep(Duration::from_secs(1));
    let mut ratios = [(); 3].map(|()| Vec::new());
    let mut before = window(&mut gateway, Beside::Nothing)?;
    for _ in 0..SWITCHES {
        for (what, ratios) in [Beside::Recorder, Beside::Shadow, Beside::Nothing].into_iter().zip(&mut ratios) {
            let rate = window(&mut gateway, what)?;
            let after = window(&mut gateway, Beside::Nothing)?;
            ratios.push(2.0 * rate / (before + after));
            before = after;
        }
    }
    drop(load);
    let [recorder, shadow, nothing] = ratios;
    bars.add("requests per second with neither, times those of its neighbours", median(nothing), "", Bar::None);
    bars.add("with the flight recorder, times", median(recorder), "", Bar::AtLeast(0.99, ""));
    bars.add("with a shadow, times", median(shadow), "", Bar::AtLeast(0.98, ""));
    Ok(())
}

/// Requests per second in a window with this beside the requests.
fn window(gateway: &mut Switchable, beside: Beside) -> io::Result<f64> {
    gateway.have_beside(beside)?;
    sleep(SETTLE);
    let (start, first) = (Instant::now(), gateway.requests()?);
    sleep(WINDOW);
    let (time, last) = (start.elapsed(), gateway.requests()?);
    Ok((last - first) / time.as_secs_f64())
}
