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
