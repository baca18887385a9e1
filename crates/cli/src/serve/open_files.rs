//! How many files this process may have open: every connection is one.

use evenkeel_gateway::Config;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The open files that are needed beside connections: files, listeners, connections of upgrades and to the admin endpoint.
const OTHER_FILES: u64 = 256;

/// Asks for as many open files as the system allows. Many systems begin with 1,024, for the sake of programs that cannot
/// deal with more.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // If the system refuses, the present limit stays.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Warns if the limit is too low for the connections that the settings allow.
pub(super) fn warn_if_too_few(config: &Config) {
    let needed = config.limits.connections as u64 + u64::from(config.concurrency_of_all()) + OTHER_FILES;
    if let Some(limit) = getrlimit(Resource::Nofile).current.filter(|limit| *limit < needed) {
        tracing::warn!(
            "the limit of open files is {limit}, but limits.connections ({}) and concurrency ({}) need {needed}; raise it \
             with `ulimit -n {needed}` or LimitNOFILE of systemd, or lower limits.connections",
            config.limits.connections,
            config.concurrency_of_all(),
        );
    }
}
