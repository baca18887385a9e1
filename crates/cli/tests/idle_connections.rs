//! Ten thousand clients that have asked once and then stay: they cost little, keep nobody waiting, and leave nothing behind.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod child;
mod peer;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use child::{PATIENCE, Running, address_after, evenkeel};
use peer::{Upstream, get};
use tempfile::NamedTempFile;

const WANTED: usize = 10_000;
/// What each side needs files for beside the connections of clients.
const OTHER_FILES: usize = 512;
/// What the gateway may keep for a connection without a request.
const BYTES_MAX: usize = 16 * 1024;
const CONNECTING_THREADS: usize = 4;
/// On a slow machine the first ones stay for minutes before the last ones are there.
const SETTINGS: &str = "timeouts: {idle: 30m}\n";
const REQUEST: &[u8] = b"GET /once HTTP/1.1\r\nHost: test\r\n\r\n";
const ANSWER_END: &[u8] = b"upstream saw /once\n";

/// How many files this process may have open.
fn files_max() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    line.split_whitespace().nth(3).unwrap().parse().unwrap_or(usize::MAX)
}

/// Lets this process have as many files open as it may ask for; those that it starts inherit that.
fn raise_files_max() {
    let (id, raise) = (std::process::id(), "prlimit --pid $0 --nofile=$(ulimit -Hn):$(ulimit -Hn)");
    // Where there is no such command, the limit stays as it is.
    let _ = Command::new("sh").args(["-c", raise, &id.to_string()]).status();
}

/// The memory of a process that is in use, in bytes.
fn memory(process: u32) -> usize {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Asks once, and returns when the whole answer is there.
fn ask(stream: &mut TcpStream) {
    stream.write_all(REQUEST).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(ANSWER_END) {
        let mut piece = [0; 1024];
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "closed after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..count]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{:?}", String::from_utf8_lossy(&answer));
}

/// So many connections, on each of which one request has been answered.
fn connect_all(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let connect = move |count| {
        let connect_one = |_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            ask(&mut stream);
            stream
        };
        (0..count).map(connect_one).collect::<Vec<_>>()
    };
    let shares = (0..CONNECTING_THREADS).map(|index| (count + index) / CONNECTING_THREADS);
    let threads: Vec<_> = shares.map(|share| thread::spawn(move || connect(share))).collect();
    threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
}

/// All values of a metric.
fn metric(admin: SocketAddr, name: &str) -> Vec<f64> {
    let (status, page) = get(admin, "/metrics");
    assert_eq!(status, 200);
    let lines = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "it never came true: {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn as_many_files_may_be_open_as_the_system_allows() {
    // The binary after a limit that many shells begin with.
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -Sn 256 && exec \"$0\" serve --listen 127.0.0.1:0 --upstream http://127.0.0.1:1 --admin-listen none",
    ]);
    let mut gateway = Running::spawn(command.arg(env!("CARGO_BIN_EXE_evenkeel")));
    gateway.line_with("ready: ");
    let limits = fs::read_to_string(format!("/proc/{}/limits", gateway.id())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let limits: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(limits[3], limits[4], "{line}");
    gateway.signal("TERM");
    assert!(gateway.end().0.success());
}

#[test]
fn ten_thousand_idle_connections_cost_little_and_leave_nothing_behind() {
    raise_files_max();
    let count = WANTED.min(files_max().saturating_sub(OTHER_FILES));
    if count < WANTED {
        println!("the system allows for {count} connections only, instead of {WANTED}");
    }
    let upstream = Upstream::start();
    let url = upstream.url();
    let settings = NamedTempFile::new().unwrap();
    fs::write(&settings, SETTINGS).unwrap();
    let arguments = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--upstream", &url];
    let mut gateway = Running::spawn(evenkeel(&arguments).arg("--config").arg(settings.path()));
    let line = gateway.line_with("ready: ");
    let (address, admin) = (address_after(&line, "listening on "), address_after(&line, "admin on "));
    let process = gateway.id();

    // What the first requests bring about once is not for the connections to answer for.
    drop(connect_all(address, 64));
    wait_until("the first ones are gone", || metric(admin, "evenkeel_connections") == [0.0]);
    let before = memory(process);

    let started_at = Instant::now();
    let mut clients = connect_all(address, count);
    println!("{count} connections were accepted and answered in {:?}", started_at.elapsed());
    assert_eq!(metric(admin, "evenkeel_connections"), [f64::from(u32::try_from(count).unwrap())]);
    assert_eq!(get(address, "/new").0, 200);

    let per_connection = || memory(process).saturating_sub(before) / count;
    wait_until("idle connections are small", || per_connection() < BYTES_MAX);
    println!("an idle connection takes {} bytes", per_connection());
    assert_eq!(get(address, "/new").0, 200);
    // None of them was given up for another.
    clients.iter_mut().step_by(97).for_each(ask);

    drop(clients);
    wait_until("no connection is left", || metric(admin, "evenkeel_connections") == [0.0]);
    let seats = metric(admin, "apiserver_flowcontrol_current_executing_seats");
    assert!(!seats.is_empty() && seats.iter().all(|seats| *seats == 0.0), "seats are taken: {seats:?}");
    assert_eq!(get(address, "/new").0, 200);
    let files = fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
    assert!(files < OTHER_FILES, "{files} files are open");
    gateway.signal("TERM");
    assert!(gateway.end().0.success());
}
