//! The memory that 10,000 idle connections take, without TLS and with it.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};

use crate::contestant::{ClientTransport, Contestant, Task};
use crate::crowd::Crowd;
use crate::upstream::Upstream;

pub(crate) const CONNECTIONS: usize = 10_000;

/// Allocators give memory back a little later.
pub(crate) const SETTLING: Duration = Duration::from_secs(2);

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    of_entry(bars, ClientTransport::Plain, "idle connections", 1.5)?;
    of_entry(bars, ClientTransport::Tls, "idle TLS connections", 1.2)
}

/// Ours take at most so many times the memory of nginx.
fn of_entry(bars: &mut Bars, entry: ClientTransport, what: &str, times: f64) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let mut figures = Vec::new();
    let contestants = Contestant::installed();
    for &contestant in &contestants {
        let running = contestant.start(Task::PassOn, entry, upstream.process.address)?;
        let crowd = match Crowd::gather(running.process.address, running.certificate.as_ref(), CONNECTIONS) {
            Ok(crowd) => crowd,
            Err(error) => {
                println!("the memory of {CONNECTIONS} {what} is left out; {}: {error}", contestant.name());
                return Ok(());
            }
        };
        sleep(SETTLING);
        figures.push(running.process.memory()?);
        drop(crowd);
    }
    for (contestant, memory) in contestants.into_iter().zip(&figures) {
        let is_ours = contestant == Contestant::Evenkeel;
        let bar =
            if is_ours { Bar::TimesAtMost(times, mib(figures[Contestant::NGINX].proportional)) } else { Bar::None };
        bars.add(
            format!("memory with {CONNECTIONS} {what}, {}", contestant.name()),
            mib(memory.proportional),
            &format!("MiB ({:.1} with shared pages counted for each process)", mib(memory.resident)),
            bar,
        );
    }
    Ok(())
}

pub(crate) fn mib(kib: u64) -> f64 {
    kib as f64 / 1024.0
}
