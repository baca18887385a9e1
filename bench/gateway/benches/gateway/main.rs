//! The gateway beside nginx, `HAProxy`, Envoy and Caddy: the same upstream, the same load, in one run.
//!
//! Give a part of a group's name (`gateway throughput`, `gateway latency`, `gateway access log`, `gateway http2`, `gateway memory`, `gateway connections`, `gateway overload`,
//! `gateway envoy`, `gateway limit`, `gateway dashboard`, `gateway tracing`, `gateway shadow`) to run
//! only those that contain it. Every process but wrk, h2load and the other proxies is this executable, which takes one of several roles.

#![allow(clippy::print_stdout, reason = "it says what is left out and why")]
#![allow(clippy::cast_precision_loss, reason = "figures for people")]

mod access_log;
mod caddy;
mod certificate;
mod connections;
mod contestant;
mod crowd;
mod dashboard;
mod envoy;
mod evenkeel;
mod ext_proc;
mod h2load;
mod haproxy;
mod http2;
mod latency;
mod limit;
mod load;
mod memory;
mod nginx;
mod open_loop;
mod overload;
mod role;
mod service;
mod shadow;
mod throughput;
mod tracing;
mod upstream;
mod wrk;

use std::io;
use std::process::ExitCode;

use evenkeel_bars::Bars;

use contestant::Contestant;
use role::Role;

/// As in the `evenkeel` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A group of measures: its name, and what adds its figures.
type Group = (&'static str, fn(&mut Bars) -> io::Result<()>);

const GROUPS: [Group; 15] = [
    ("gateway throughput", throughput::bars),
    ("gateway latency", latency::bars),
    ("gateway access log", access_log::bars),
    ("gateway http2", http2::bars),
    ("gateway memory", memory::bars),
    ("gateway connections", connections::bars),
    ("gateway overload", overload::bars),
    ("gateway envoy latency", ext_proc::latency),
    ("gateway envoy neighbours", ext_proc::neighbours),
    ("gateway envoy aborts", ext_proc::aborts),
    ("gateway envoy outages", ext_proc::outages),
    ("gateway limit", limit::bars),
    ("gateway dashboard", dashboard::bars),
    ("gateway tracing", tracing::bars),
    ("gateway shadow", shadow::bars),
];

fn main() -> ExitCode {
    let outcome = match Role::of_this_process() {
        Role::Start => role::start_bench(),
        Role::Bench => bench().map(|()| ExitCode::SUCCESS),
        Role::Gateway => return evenkeel_cli::run(std::env::args_os()),
        Role::Service => service::run().map(|()| ExitCode::SUCCESS),
        Role::Generator => open_loop::generate().map(|()| ExitCode::SUCCESS),
        Role::Crowd => crowd::run().map(|()| ExitCode::SUCCESS),
        Role::ExtProcStub => ext_proc::run_stub().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        println!("the benchmark of the gateway: {error}");
        ExitCode::FAILURE
    })
}

fn bench() -> io::Result<()> {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    let groups: Vec<Group> = GROUPS.into_iter().filter(|(name, _)| bars.wants(name)).collect();
    if groups.is_empty() {
        return Ok(());
    }
    if let Some(missing) =
        ["wrk", "nginx", "haproxy"].into_iter().find(|program| !evenkeel_process::is_installed(program))
    {
        println!("the benchmark of the gateway is skipped: `{missing}` is not installed; `cargo xtask bench` tries to");
        return Ok(());
    }
    for absent in [Contestant::Envoy, Contestant::Caddy].into_iter().filter(|contestant| !contestant.is_installed()) {
        println!("{} is left out: it is not installed; `cargo xtask bench` tries to", absent.name());
    }
    let before = evenkeel_process::load_average()?;
    for (_, add) in groups {
        add(&mut bars)?;
    }
    let after = evenkeel_process::load_average()?;
    bars.print(&format!("The gateway beside other proxies (load average {before} before and {after} after)"));
    Ok(())
}
