//! Clients that mean harm against the real binary, on loopback only: attack, figure, bar, verdict in one table.
//!
//! Give a part of an attack's name to run only those that contain it. Every attack ends by itself.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command reports on the terminal")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod api;
mod drains;
mod files;
mod http1;
mod http2;
mod in_flight;
mod levels;
mod memory;
mod paths;
mod server;
mod slow_clients;
mod upstream;

use std::process::ExitCode;

use anyhow::{Result, bail};
use evenkeel_bars::{Bar, Bars};
use evenkeel_process::load_average;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::{Builder, Runtime};

use server::{Endings, Server};

/// What attacks need, and where their figures go.
struct Stage {
    runtime: Runtime,
    bars: Bars,
    endings: Endings,
}

/// Its name, and what it does.
type Attack = (&'static str, fn(&mut Stage, &str) -> Result<()>);

const ATTACKS: [Attack; 20] = [
    ("in flight, resets", in_flight::resets),
    ("in flight, closes", in_flight::closes),
    ("in flight, reset streams", in_flight::reset_streams),
    ("in flight, retry storm", in_flight::retries),
    ("slow bodies", slow_clients::bodies),
    ("bodies called grpc", slow_clients::called_grpc),
    ("grpc calls", slow_clients::calls),
    ("permission to send", slow_clients::permission),
    ("slow readers", slow_clients::readers),
    ("slow clients with seats", slow_clients::with_seats),
    ("heads", memory::heads),
    ("hints", memory::hints),
    ("unread streams", memory::unread_streams),
    ("api lists", api::lists),
    ("api patches", api::patches),
    ("api silence", api::silence),
    ("paths in disguise", paths::disguises),
    ("ten million queues", levels::queues),
    ("fifos", files::fifos),
    ("drains", drains::drains),
];

/// What a server may take under an attack.
const MEMORY_MAX: Bar = Bar::AtMost(256.0, "MB");

fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(missed) => {
            eprintln!("bars missed and attacks failed: {missed}");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("attack: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the attacks that were asked for; how many bars were missed and how many attacks could not run.
fn run() -> Result<usize> {
    let bars = Bars::filtered(std::env::args().skip(1));
    let attacks: Vec<Attack> = ATTACKS.into_iter().filter(|(name, _)| bars.wants(name)).collect();
    if attacks.is_empty() {
        let names = ATTACKS.map(|(name, _)| name).join("`, `");
        bail!("no attack has such a name; there are `{names}`");
    }
    raise_open_files();
    let before = load_average()?;
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let mut stage = Stage { runtime, bars, endings: Endings::default() };
    let mut failed = 0;
    for (name, attack) in attacks {
        println!("{name} ...");
        // The figures of the other attacks took minutes, and are worth seeing all the same.
        if let Err(error) = attack(&mut stage, name) {
            eprintln!("attack: the attack `{name}` failed: {error:#}");
            failed += 1;
        }
    }
    let Stage { mut bars, endings, .. } = stage;
    bars.add("panics", endings.panics as f64, &format!("in {} servers", endings.servers), Bar::AtMost(0.0, ""));
    bars.add("exit codes other than 0", endings.unclean as f64, "", Bar::AtMost(0.0, ""));
    bars.print(&format!("Attacks (load average {before} before and {} after)", load_average()?));
    Ok(bars.missed() + failed)
}

/// Every connection is an open file, here and in the servers, which inherit the limit.
fn raise_open_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // A system that refuses has a reason; attacks that need more say so when they cannot connect.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

// === impl Stage ===

impl Stage {
    /// Adds the memory of a server under an attack, and ends the server.
    fn end(&mut self, attack: &str, server: Server) -> Result<()> {
        let memory = server.memory_above_idle_mb()?;
        self.bars.add(format!("{attack}: memory above idle"), memory, "MB", MEMORY_MAX);
        server.end(&mut self.endings)
    }
}
