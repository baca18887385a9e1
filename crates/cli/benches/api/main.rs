//! The bars of the API server: the binary as a child process, over TLS on the loopback, on cores that it shares with
//! its clients.

#![expect(clippy::print_stdout, reason = "a benchmark speaks to its user on the terminal")]

mod fill;
mod server;
mod wrk;

use std::cell::LazyCell;
use std::path::Path;
use std::time::Duration;

use evenkeel_bars::{Bar, Bars};
use tempfile::TempDir;

use fill::{fill, wait_for_conditions};
use server::Server;
use wrk::{Load, requests_per_second};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const STORED: usize = 1_000;
const MANY: usize = 20_000;
/// Times in all, and the figure is the best: the machine is shared with whoever else uses it.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_secs(3);

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    if !wrk::is_installed() {
        println!("the bars of the API are not measured: wrk is not installed");
        return;
    }
    let full = TempDir::new().expect("a folder");
    read(&mut bars);
    write(&mut bars);
    stored(&mut bars, &full);
    many(&mut bars);
    bars.print("The API server");
}

fn read(bars: &mut Bars) {
    let rate = |path: &str| {
        let folder = TempDir::new().expect("a folder");
        let server = Server::start(folder.path());
        best(|| requests_per_second(&server, &Load::get(path), 32, ROUND))
    };
    bars.measure("api: gets, 32 connections", "a second", || {
        (rate(&format!("{SCHEMAS}/global-default")), Bar::AtLeast(35_000.0, "a second"))
    });
    bars.measure("api: lists of the bootstrap flow schemas, 32 connections", "a second", || {
        (rate(SCHEMAS), Bar::AtLeast(12_000.0, "a second"))
    });
}

fn write(bars: &mut Bars) {
    let rate = |start: fn(&Path) -> Server, connections| {
        best(|| {
            let folder = TempDir::new().expect("a folder");
            requests_per_second(&start(folder.path()), &Load::create(SCHEMAS), connections, ROUND)
        })
    };
    bars.measure("api: durable creates, 64 connections", "a second", || {
        (rate(Server::start, 64), Bar::AtLeast(5_000.0, "a second"))
    });
    // Two flow controls follow the objects, and a response waits for both, except while so many writes come that the follower rests.
    bars.measure("api: durable creates with a gateway, 64 connections", "a second", || {
        (rate(Server::start_with_gateway, 64), Bar::None)
    });
    bars.measure("api: durable creates, 1 connection", "a second", || (rate(Server::start, 1), Bar::None));
    bars.measure("api: durable creates with a gateway, 1 connection", "a second", || {
        (rate(Server::start_with_gateway, 1), Bar::None)
    });
}

fn stored(bars: &mut Bars, folder: &TempDir) {
    let prepared = || fill(&Server::start(folder.path()), STORED);
    bars.measure("api: list of 1,000 objects", "ms", || {
        prepared();
        let server = Server::start(folder.path());
        let lists = best(|| requests_per_second(&server, &Load::get(SCHEMAS), 1, ROUND));
        (1_000.0 / lists, Bar::AtMost(10.0, "ms"))
    });
    bars.measure("api: start-up to ready with 1,000 objects", "ms", || {
        prepared();
        let start = || Server::start(folder.path()).started_in.as_secs_f64() * 1_000.0;
        let figure = std::iter::repeat_with(start).take(5).fold(f64::INFINITY, f64::min);
        (figure, Bar::AtMost(300.0, "ms"))
    });
    bars.measure("api: resident memory then", "MB", || {
        prepared();
        (Server::start(folder.path()).resident_mb(), Bar::AtMost(40.0, "MB"))
    });
}

/// The memory of a server with very many objects: when it has written all their conditions, started over them, and after a client
/// has read them all.
fn many(bars: &mut Bars) {
    let folder = TempDir::new().expect("a folder");
    let written = LazyCell::new(|| {
        fill(&Server::start_without_controller(folder.path()), MANY);
        let server = Server::start(folder.path());
        wait_for_conditions(&server, MANY);
        server.settled_mb()
    });
    let prepared = LazyCell::new(|| {
        LazyCell::force(&written);
        Server::start(folder.path())
    });
    bars.measure("api: resident memory, all 20,000 conditions Dangling written", "MB", || {
        (*written, Bar::AtMost(120.0, "MB"))
    });
    bars.measure("api: resident memory with 20,000 objects", "MB", || {
        (prepared.settled_mb(), Bar::AtMost(120.0, "MB"))
    });
    bars.measure("api: resident memory after a list of all of them", "MB", || {
        requests_per_second(&prepared, &Load::get(SCHEMAS), 1, ROUND);
        (prepared.settled_mb(), Bar::AtMost(180.0, "MB"))
    });
}

fn best(figure: impl FnMut() -> f64) -> f64 {
    std::iter::repeat_with(figure).take(ROUNDS).fold(0.0, f64::max)
}
