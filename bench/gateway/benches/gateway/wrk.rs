//! Runs wrk, and reads what it says.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use crate::contestant::TENANT_HEADER;

/// What a run of wrk has found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) requests: f64,
    pub(crate) requests_per_second: f64,
    pub(crate) p99_ms: f64,
}

/// Requests that wrk sends as fast as it can, until this is dropped.
#[derive(Debug)]
pub(crate) struct Load(Child);

/// The units of time that wrk uses, in milliseconds. What ends with another one comes before it.
const UNITS: [(&str, f64); 4] = [("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 6e4)];

/// A run of so many seconds. It is an error if any request failed or was turned away.
pub(crate) fn run(target: SocketAddr, connections: usize, seconds: u32) -> io::Result<Run> {
    let output = command(target, connections, &format!("{seconds}s")).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    read(&said).ok_or_else(|| Error::other(format!("not every request of wrk was answered:\n{said}")))
}

fn command(target: SocketAddr, connections: usize, duration: &str) -> Command {
    let mut wrk = Command::new("wrk");
    wrk.args(["--threads", "1", "--latency", "--header"]).arg(format!("{TENANT_HEADER}: polite"));
    wrk.arg("--connections").arg(connections.to_string()).args(["--duration", duration]);
    wrk.arg(format!("http://{target}/"));
    wrk
}

fn read(said: &str) -> Option<Run> {
    let after = |name: &str| said.lines().find_map(|line| line.trim().strip_prefix(name).map(str::trim));
    if after("Non-2xx").or(after("Socket errors")).is_some() {
        return None;
    }
    let requests = said.lines().find_map(|line| line.split_once(" requests in "))?.0;
    Some(Run {
        requests: requests.trim().parse().ok()?,
        requests_per_second: after("Requests/sec:")?.parse().ok()?,
        p99_ms: milliseconds(after("99%")?)?,
    })
}

fn milliseconds(text: &str) -> Option<f64> {
    UNITS.into_iter().find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
}

// === impl Load ===

impl Load {
    pub(crate) fn start(target: SocketAddr, connections: usize) -> io::Result<Self> {
        Ok(Self(command(target, connections, "1h").stdout(Stdio::null()).spawn()?))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It has ended already if it could not go on.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
