//! Envoy with Evenkeel beside it, over external processing: what that adds, and what it is good for (`docs/spec/ext_proc.md`).

mod aborts;
mod counting;
mod latency;
mod neighbours;
mod outages;
mod stub;

use std::io;
use std::net::SocketAddr;

use evenkeel_bars::Bars;
use evenkeel_process::{Process, free_address};
use tempfile::TempDir;

use crate::contestant::{Contestant, Task};
use crate::envoy::{self, Filter};
use crate::evenkeel;

pub(crate) use stub::run as run_stub;

/// An Envoy, and whom it asks, if it asks anybody.
struct Asking {
    envoy: Process,
    _asked: Option<Process>,
    _folders: [TempDir; 2],
}

/// Whom an Envoy asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nobody,
    /// A server that lets every request through at once.
    Stub,
    /// A gateway, with an admin endpoint if it has an address.
    Evenkeel {
        admin: Option<SocketAddr>,
    },
}

pub(crate) fn latency(bars: &mut Bars) -> io::Result<()> {
    if_installed(bars, latency::bars)
}

pub(crate) fn neighbours(bars: &mut Bars) -> io::Result<()> {
    if_installed(bars, neighbours::bars)
}

pub(crate) fn aborts(bars: &mut Bars) -> io::Result<()> {
    if_installed(bars, aborts::bars)
}

pub(crate) fn outages(bars: &mut Bars) -> io::Result<()> {
    if_installed(bars, outages::bars)
}

fn if_installed(bars: &mut Bars, add: fn(&mut Bars) -> io::Result<()>) -> io::Result<()> {
    if Contestant::Envoy.is_installed() { add(bars) } else { Ok(()) }
}

fn folder() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()
}

// === impl Asking ===

impl Asking {
    fn start(task: Task, upstream: SocketAddr, asked: Asked) -> io::Result<Self> {
        let folders = [folder()?, folder()?];
        let (address, own) = (free_address()?, folders[0].path());
        let process = match asked {
            Asked::Nobody => None,
            Asked::Stub => Some(stub::start(address, own)?),
            Asked::Evenkeel { admin } => Some(evenkeel::start_for_envoy(task, address, admin, own)?),
        };
        let filter = if process.is_some() {
            Filter::ExtProc { gateway: address, failure_mode_allow: false }
        } else {
            Filter::None
        };
        // The gateway alone keeps requests away.
        let task = if process.is_some() { Task::PassOn } else { task };
        let envoy = envoy::start(task, &filter, None, upstream, folders[1].path())?;
        Ok(Self { envoy, _asked: process, _folders: folders })
    }
}
