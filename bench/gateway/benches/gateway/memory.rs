//! The memory that 10,000 idle connections take.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};

use crate::contestant::{Contestant, Task};
use crate::crowd::Crowd;
use crate::upstream::Upstream;

pub(crate) const CONNECTIONS: usize = 10_000;

/// Allocators give memory back a little later.
pub(crate) const SETTLING: Duration = Duration::from_secs(2);

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let mut figures = Vec::new();
    for contestant in Contestant::ALL {
        let running = contestant.start(Task::PassOn, upstream.process.address)?;
        let crowd = match Crowd::gather(running.process.address, CONNECTIONS) {
            Ok(crowd) => crowd,
            Err(error) => {
                println!("the memory of {CONNECTIONS} connections is left out; {}: {error}", contestant.name());
                return Ok(());
            }
        };
        sleep(SETTLING);
        figures.push(running.process.memory()?);
        drop(crowd);
    }
    for (contestant, memory) in Contestant::ALL.into_iter().zip(&figures) {
        let is_ours = contestant == Contestant::Evenkeel;
        let bar = if is_ours { Bar::TimesAtMost(1.5, mib(figures[1].proportional)) } else { Bar::None };
        bars.add(
            format!("memory with {CONNECTIONS} idle connections, {}", contestant.name()),
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
