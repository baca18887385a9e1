//! Runs h2load, and reads what it prints.

use std::io::{self, Error};
use std::net::SocketAddr;
use std::process::Command;

use crate::contestant::TENANT_HEADER;

/// What a run of h2load has found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) requests: f64,
    pub(crate) requests_per_second: f64,
}

/// A run of so many seconds over TLS. It is an error if any request failed or was rejected.
pub(crate) fn run(target: SocketAddr, connections: usize, streams: usize, seconds: u32) -> io::Result<Run> {
    let mut h2load = Command::new("h2load");
    h2load.args(["--threads", "1", "--header"]).arg(format!("{TENANT_HEADER}: polite"));
    h2load.arg("--clients").arg(connections.to_string()).arg("--max-concurrent-streams").arg(streams.to_string());
    let output = h2load.arg("--duration").arg(seconds.to_string()).arg(format!("https://{target}/")).output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    read(&printed).ok_or_else(|| Error::other(format!("not every request of h2load succeeded:\n{printed}")))
}

fn read(printed: &str) -> Option<Run> {
    let after = |name: &str| printed.lines().find_map(|line| line.trim().strip_prefix(name).map(str::trim));
    // `finished in 2.00s, 51234.50 req/s, 1.85MB/s`
    let rate = after("finished in")?.split(", ").find_map(|part| part.strip_suffix(" req/s"))?;
    // `requests: 102469 total, 102789 started, 102469 done, 102469 succeeded, 0 failed, 0 errored, 0 timeout`
    let counts = after("requests:")?;
    let count = |name: &str| counts.split(", ").find_map(|part| part.strip_suffix(name)?.trim().parse::<f64>().ok());
    let failed = count("failed")? + count("errored")? + count("timeout")?;
    // `status codes: 102469 2xx, 0 3xx, 0 4xx, 0 5xx`
    let codes = after("status codes:")?;
    let is_rejected = codes.split(", ").any(|part| !part.ends_with("2xx") && !part.starts_with("0 "));
    let requests = count("succeeded")?;
    let is_good = failed == 0.0 && !is_rejected && requests > 0.0;
    is_good.then_some(Run { requests, requests_per_second: rate.parse().ok()? })
}
