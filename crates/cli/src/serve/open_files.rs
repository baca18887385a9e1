//! How many files this process may have open: every connection is one.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Asks for as many open files as the system allows. Many systems begin with 1,024, for the sake of programs that cannot
/// deal with more.
pub(super) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // A system that refuses has a reason, and what it allows so far is used.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Says so if there can never be as many connections as the settings allow.
pub(super) fn warn_if_fewer_than(connections: usize) {
    let Some(open_files) = getrlimit(Resource::Nofile).current else { return };
    if usize::try_from(open_files).is_ok_and(|open_files| open_files < connections) {
        tracing::warn!(
            open_files,
            connections,
            "the system allows for fewer open files than `limits.connections`; raise its limit (`ulimit -n`, \
             `LimitNOFILE=`), or lower the setting"
        );
    }
}
