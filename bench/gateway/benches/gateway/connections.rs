//! What a connection costs with 100 routes configured: connections per second, and the memory of 10,000 idle ones.
//!
//! `EVENKEEL_BENCH_BASELINE` names another `evenkeel` binary, such as one of an older version: it takes its turns in the same
//! run, and has rows of its own.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::{Process, median};
use tempfile::TempDir;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::crowd::{self, Crowd};
use crate::evenkeel;
use crate::memory::{CONNECTIONS, SETTLING, mib};
use crate::upstream::Upstream;

const ROUTES: usize = 100;
const BASELINE: &str = "EVENKEEL_BENCH_BASELINE";
const ROUNDS: usize = 7;
const ROUND_TIME: Duration = Duration::from_secs(2);
/// So many clients connect at a time.
const CLIENTS: usize = 16;

/// A gateway that is measured.
struct Measured {
    name: &'static str,
    process: Process,
    _folder: TempDir,
}

pub(crate) fn bars(bars: &mut Bars) -> io::Result<()> {
    let upstream = Upstream::start()?;
    let all = start_all(&upstream)?;
    let mut rates: Vec<Vec<f64>> = all.iter().map(|_| Vec::new()).collect();
    for round in 0..ROUNDS {
        // Each of them begins a round as often as the others.
        for place in 0..all.len() {
            let index = (round + place) % all.len();
            rates[index].push(connections_per_second(all[index].process.address)?);
        }
    }
    for (measured, rates) in all.iter().zip(rates) {
        let measure = format!("connections per second with {ROUTES} routes, {}", measured.name);
        bars.add(measure, median(rates), "", Bar::None);
    }
    drop(all);
    // Anew, because an allocator keeps some of what the first load took.
    for measured in start_all(&upstream)? {
        let before = measured.process.memory()?;
        let crowd = Crowd::gather(measured.process.address, None, CONNECTIONS)?;
        sleep(SETTLING);
        let memory = measured.process.memory()?;
        let each = memory.proportional.saturating_sub(before.proportional) * 1024 / CONNECTIONS as u64;
        bars.add(
            format!("memory with {CONNECTIONS} idle connections and {ROUTES} routes, {}", measured.name),
            mib(memory.proportional),
            &format!("MiB ({each} bytes for each connection)"),
            Bar::None,
        );
        drop(crowd);
    }
    Ok(())
}

fn start_all(upstream: &Upstream) -> io::Result<Vec<Measured>> {
    let baseline = std::env::var_os(BASELINE).map(PathBuf::from);
    let binaries = [("evenkeel", None), ("baseline", baseline)];
    let wanted = binaries.into_iter().filter(|(name, binary)| *name == "evenkeel" || binary.is_some());
    let start = |(name, binary): (&'static str, Option<PathBuf>)| {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let process = evenkeel::start_routed(binary.as_deref(), ROUTES, upstream.process.address, folder.path())?;
        Ok(Measured { name, process, _folder: folder })
    };
    wanted.map(start).collect()
}

/// How many connections a second are opened, have one response, and are closed.
fn connections_per_second(target: SocketAddr) -> io::Result<f64> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let started_at = Instant::now();
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            clients.spawn(async move {
                let mut count: usize = 0;
                while started_at.elapsed() < ROUND_TIME {
                    let stream = crowd::ask_once(target, client + count * CLIENTS).await?;
                    // A port that is closed in the ordinary way stays in use for a minute.
                    stream.set_zero_linger()?;
                    count += 1;
                }
                Ok::<_, Error>(count)
            });
        }
        let mut count = 0;
        while let Some(client) = clients.join_next().await {
            count += client.map_err(Error::other)??;
        }
        Ok(count as f64 / started_at.elapsed().as_secs_f64())
    })
}
