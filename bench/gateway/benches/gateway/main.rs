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

use evenkeel_bars::{Bars, Group, run_groups};

use contestant::Contestant;
use role::{ROLES, Role};

/// As in the `evenkeel` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    let outcome = match ROLES.of_this_process() {
        None => ROLES.restart(Role::Bench),
        Some(Role::Bench) => bench().map(|()| ExitCode::SUCCESS),
        Some(Role::Gateway) => return evenkeel_cli::run(std::env::args_os()),
        Some(Role::Service) => service::run().map(|()| ExitCode::SUCCESS),
        Some(Role::Generator) => open_loop::generate().map(|()| ExitCode::SUCCESS),
        Some(Role::Crowd) => crowd::run().map(|()| ExitCode::SUCCESS),
        Some(Role::ExtProcStub) => ext_proc::run_stub().map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        println!("the benchmark of the gateway: {error}");
        ExitCode::FAILURE
    })
}

fn bench() -> io::Result<()> {
    let bars = Bars::filtered(std::env::args().skip(1));
    let groups = bars.wanted(&GROUPS);
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
    run_groups(bars, &groups, "The gateway beside other proxies")
}
