//! The binary as a child process.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server that answers, until it is dropped.
pub(crate) struct Server {
    child: Child,
    /// As in `https://127.0.0.1:4000`.
    pub(crate) url: String,
    pub(crate) kubeconfig: PathBuf,
    /// The administrator's.
    pub(crate) token: String,
    /// From its start until it said that it is ready.
    pub(crate) started_in: Duration,
}

// === impl Server ===

impl Server {
    pub(crate) fn start(data: &Path) -> Self {
        Self::start_with(&["--api-only"], data)
    }

    /// One that leaves the conditions of flow schemas alone.
    pub(crate) fn start_without_controller(data: &Path) -> Self {
        Self::start_with(&["--api-only", "--no-status-controller"], data)
    }

    /// One with a gateway, whose flow control follows the objects. Nobody sends it requests, so nothing has to listen on port 9.
    pub(crate) fn start_with_gateway(data: &Path) -> Self {
        let gateway = ["--upstream", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--admin-listen", "none"];
        Self::start_with(&[&gateway[..], &["--preset", "kubernetes"]].concat(), data)
    }

    fn start_with(arguments: &[&str], data: &Path) -> Self {
        let start = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .arg("serve")
            .args(arguments)
            .args(["--api-listen", "127.0.0.1:0", "--log-filter", "error", "--data-dir"])
            .arg(data)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        let started_in = start.elapsed();
        let url = line.split_whitespace().find(|word| word.starts_with("https://")).expect("an address").to_owned();
        let tokens = fs::read_to_string(data.join("admin-token.csv")).expect("the administrator's token");
        let token = tokens.split(',').next().unwrap_or_default().to_owned();
        Self { child, url, kubeconfig: data.join("kubeconfig"), token, started_in }
    }

    /// The resident memory when it no longer changes: the server writes the condition `Dangling` of new flow schemas in
    /// the background, and the allocator gives memory back after some seconds.
    pub(crate) fn settled_mb(&self) -> f64 {
        let mut last = self.resident_mb();
        let mut unchanged = 0;
        for _ in 0..30 {
            std::thread::sleep(Duration::from_secs(2));
            let now = self.resident_mb();
            unchanged = if (now - last).abs() < 0.01 * last { unchanged + 1 } else { 0 };
            if unchanged == 3 {
                return now;
            }
            last = now;
        }
        last
    }

    pub(crate) fn resident_mb(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a system with /proc");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the resident memory");
        let kilobytes: f64 = line.split_whitespace().next().and_then(|word| word.parse().ok()).expect("a number");
        kilobytes / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // In good order, so that the next one does not have to repair the store.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
