//! Load made by wrk.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use tempfile::NamedTempFile;

use crate::server::Server;

/// What is sent, as a script of wrk's, in which `TOKEN` is the token.
pub(crate) struct Load {
    path: String,
    script: String,
}

const AUTHORIZED: &str = "wrk.headers['Authorization'] = 'Bearer TOKEN'\n";

/// Each thread makes up names of its own.
const CREATE: &str = r#"
wrk.headers['Content-Type'] = 'application/json'
local threads = 0
function setup(thread)
  thread:set('id', threads)
  threads = threads + 1
end
function init(args)
  created = 0
end
local spec = '"spec":{"priorityLevelConfiguration":{"name":"workload-low"},"matchingPrecedence":600,"rules":[{' ..
  '"subjects":[{"kind":"User","user":{"name":"alice"}}],' ..
  '"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["/reports/*"]}]}]}'
function request()
  created = created + 1
  return wrk.format('POST', nil, nil, '{"metadata":{"name":"object-' .. id .. '-' .. created .. '"},' .. spec .. '}')
end
"#;

// === impl Load ===

impl Load {
    pub(crate) fn get(path: &str) -> Self {
        Self { path: path.to_owned(), script: AUTHORIZED.to_owned() }
    }

    /// Creates flow schemas, each with a name of its own.
    pub(crate) fn create(path: &str) -> Self {
        Self { path: path.to_owned(), script: format!("{AUTHORIZED}{CREATE}") }
    }
}

pub(crate) fn is_installed() -> bool {
    Command::new("wrk").arg("--version").output().is_ok()
}

/// How many are answered, all of them well.
pub(crate) fn requests_per_second(server: &Server, load: &Load, connections: u32, time: Duration) -> f64 {
    let mut script = NamedTempFile::with_suffix(".lua").expect("a file");
    script.write_all(load.script.replace("TOKEN", &server.token).as_bytes()).expect("a script");
    let threads = if connections > 1 { "2" } else { "1" };
    let output = Command::new("wrk")
        .args(["-t", threads, "-c", &connections.to_string(), "-d", &format!("{}s", time.as_secs()), "-s"])
        .arg(script.path())
        .arg(format!("{}{}", server.url, load.path))
        .output()
        .expect("wrk runs");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(!report.contains("Non-2xx") && !report.contains("Socket errors"), "{report}");
    let figure = report.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
    figure.and_then(|figure| figure.trim().parse().ok()).unwrap_or_else(|| panic!("no figure in {report}"))
}
