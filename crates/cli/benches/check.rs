//! The bars of `evenkeel check`: how long 1,000 schemas with 5,000 rules take, and how much memory.

#![allow(clippy::unwrap_used, reason = "a benchmark may panic")]

#[path = "../../check/benches/many.rs"]
mod many;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use evenkeel_bars::{Bar, Bars};

const RUNS: u32 = 15;

fn main() {
    let mut bars = Bars::filtered(std::env::args().skip(1));
    if bars.wants("check") {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("objects.yaml");
        fs::write(&path, many::objects()).unwrap();
        let path = path.to_str().unwrap();
        bars.add("check 1,000 schemas with 5,000 rules: whole run", fastest(path), "ms", Bar::AtMost(150.0, "ms"));
        bars.add("check 1,000 schemas with 5,000 rules: memory", peak_mb(path), "MB", Bar::AtMost(64.0, "MB"));
    }
    bars.print("evenkeel check");
}

fn check(path: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.args(["check", "-o", "json", path]).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

/// The time of the fastest of some runs, in milliseconds.
fn fastest(path: &str) -> f64 {
    let run = || {
        let start = Instant::now();
        let status = check(path).stdout(Stdio::null()).status().unwrap();
        assert!(matches!(status.code(), Some(0 | 1)), "{status}");
        start.elapsed()
    };
    (0..RUNS).map(|_| run()).min().unwrap_or(Duration::MAX).as_secs_f64() * 1e3
}

/// The most memory that a run had, in megabytes. It is read while the run waits for somebody to read what it prints, which is the
/// last thing that it does.
fn peak_mb(path: &str) -> f64 {
    let mut child = check(path).stdout(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let stat = format!("/proc/{}/wchan", child.id());
    let until = Instant::now() + Duration::from_secs(30);
    let mut peak = 0.0;
    while Instant::now() < until {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let Some(kb) = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok()) else { break };
        peak = kb / 1024.0;
        if fs::read_to_string(&stat).unwrap_or_default().contains("pipe") {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(child.stdout.take());
    child.wait().unwrap();
    peak
}
