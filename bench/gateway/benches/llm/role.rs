//! What a process of this executable is there for.

use std::io;
use std::process::Command;

use evenkeel_process::Roles;

/// What a process is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Measures.
    Bench,
    /// Is `evenkeel`, with its arguments.
    Evenkeel,
    /// Sends events that say when they were sent, and responses that cost nothing.
    EventSource,
}

pub(crate) const ROLES: Roles<Role> =
    Roles(&[(Role::Bench, "bench"), (Role::Evenkeel, "evenkeel"), (Role::EventSource, "event-source")]);

// === impl Role ===

impl Role {
    /// This executable in the role.
    pub(crate) fn command(self) -> io::Result<Command> {
        ROLES.command(self)
    }
}
