//! How many files the process may have open. Every connection is one, so clients must not be able to take them all.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use rustix::process::{Resource, getrlimit};

/// The last descriptors are not for clients: they are for connections to upstreams, the admin endpoint and files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenFiles {
    clients_max: RawFd,
}

/// Of so many descriptors one is kept from clients, but no more than [`KEPT_MAX`] in all.
const KEPT_SHARE: u64 = 4;
const KEPT_MAX: u64 = 1024;

/// Whether the system or the process has no descriptor left.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

// === impl OpenFiles ===

impl OpenFiles {
    /// By the limit of the process as it is now.
    pub(crate) fn of_process() -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        let kept = (limit / KEPT_SHARE).min(KEPT_MAX);
        Self { clients_max: RawFd::try_from(limit - kept).unwrap_or(RawFd::MAX) }
    }

    /// Whether a connection has got one of the last descriptors. The system gives out the lowest that is free, so there
    /// are few left then.
    pub(crate) fn are_short_with(&self, connection: &impl AsRawFd) -> bool {
        connection.as_raw_fd() >= self.clients_max
    }
}
