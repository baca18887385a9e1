//! The limit of open files. Every connection takes one, and health checks need some too.
//!
//! The system gives out the lowest descriptor that is free. So a connection with a high one tells that few are left, and by
//! closing such a connection at once the gateway keeps the highest ones for other uses: the last quarter to connections to
//! upstreams, without which clients cannot be served, and the last sixteenth to the admin endpoint.

use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};

/// Which descriptors are for whom, by the limit of the process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFiles {
    clients_end: RawFd,
    upstreams_end: RawFd,
}

/// No more than these are kept, however many there are.
const KEPT_FROM_CLIENTS_MAX: u64 = 1024;
const KEPT_FOR_ADMIN_MAX: u64 = 32;

/// Why connections are refused, for the log.
pub(super) const SHORTAGE: &str = "the limit of open files is nearly reached; raise it with `ulimit -n`";

const EMFILE: i32 = 24;

/// Whether the system or the process has no descriptor left.
pub(super) fn is_shortage(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// Whether a connection waits to be accepted.
pub(super) fn has_waiting_connection(listener: &impl AsFd) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

// === impl OpenFiles ===

impl OpenFiles {
    /// The number that the limit of the process allows now.
    pub(crate) fn of_process() -> Self {
        Self::of_limit(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    fn of_limit(limit: u64) -> Self {
        let end = |kept: u64| RawFd::try_from(limit - kept).unwrap_or(RawFd::MAX);
        Self {
            clients_end: end((limit / 4).min(KEPT_FROM_CLIENTS_MAX)),
            upstreams_end: end((limit / 16).min(KEPT_FOR_ADMIN_MAX)),
        }
    }

    /// Whether there are too few descriptors left to serve this client.
    pub(crate) fn are_short_for_client(self, connection: &impl AsRawFd) -> bool {
        connection.as_raw_fd() >= self.clients_end
    }

    /// The connection to an upstream, unless it has a descriptor of the admin endpoint's.
    pub(crate) fn for_upstream<C: AsRawFd>(self, connection: C) -> io::Result<C> {
        if connection.as_raw_fd() >= self.upstreams_end {
            return Err(io::Error::from_raw_os_error(EMFILE));
        }
        Ok(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_leaves_something_for_each() {
        for (limit, clients_end, upstreams_end) in [
            (256, 192, 240),
            (1024, 768, 992),
            (1 << 20, (1 << 20) - 1024, (1 << 20) - 32),
            (u64::MAX, RawFd::MAX, RawFd::MAX),
        ] {
            let files = OpenFiles::of_limit(limit);
            assert_eq!((files.clients_end, files.upstreams_end), (clients_end, upstreams_end), "{limit}");
        }
    }
}
