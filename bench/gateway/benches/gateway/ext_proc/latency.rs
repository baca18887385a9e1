//! What asking adds to the latency of requests, and how much of that is Envoy's own part.

use std::io;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::median;

use super::{Asked, Asking};
use crate::contestant::Task;
use crate::open_loop::{self, Run};
use crate::upstream::Upstream;
use crate::wrk;

const CONNECTIONS: usize = 64;
const ROUNDS: usize = 5;
const ROUND_SECONDS: u32 = 2;
/// A rate at which two cores are idle for most of the time, although they also run the generator and the service.
const LIGHT: u32 = 1000;

type Figure = fn(&Run) -> f64;

/// The figures, and how much asking may add, in microseconds.
const FIGURES: [(&str, Figure, f64); 2] = [("median", |run| run.p50_ms, 100.0), ("p99", |run| run.p99_ms, 300.0)];

pub(super) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let asked = [Asked::Nobody, Asked::Stub, Asked::Evenkeel { admin: None }];
    let start = |asked| Asking::start(Task::PassOn, upstream.process.address, asked);
    let all: Vec<Asking> = asked.into_iter().map(start).collect::<io::Result<_>>()?;
    let mut most = 0.0;
    for (asking, name) in all.iter().zip(["alone", "that asks a server which replies at once", "that asks Evenkeel"]) {
        most = wrk::run(asking.envoy.address, CONNECTIONS, 2)?.requests_per_second;
        bars.add(format!("Envoy {name}: requests per second"), most, "", Bar::None);
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate of some thousands")]
    let half = (most / 2.0) as u32;
    for (rate, when) in [(LIGHT, format!("at {LIGHT} a second")), (half, format!("at half load ({half} a second)"))] {
        let mut runs: [Vec<Run>; 3] = Default::default();
        for round in 0..ROUNDS {
            for place in 0..all.len() {
                let index = (round + place) % all.len();
                runs[index].push(open_loop::run(all[index].envoy.address, rate, ROUND_SECONDS)?);
            }
        }
        for (name, figure, most_us) in FIGURES {
            let [alone, stub, ours] = [0, 1, 2].map(|index| median(runs[index].iter().map(figure)) * 1e3);
            bars.add(format!("{name} {when}, Envoy alone"), alone, "us", Bar::None);
            bars.add(format!("{name} added by asking a server which replies at once"), stub - alone, "us", Bar::None);
            bars.add(format!("{name} added by asking Evenkeel"), ours - alone, "us", Bar::AtMost(most_us, "us"));
        }
    }
    Ok(())
}
