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
    Gateway,
    /// Is the service with a limited capacity.
    Service,
    /// Sends requests at a fixed rate.
    Generator,
    /// Holds many idle connections.
    Crowd,
    /// Lets every request of an Envoy through at once.
    ExtProcStub,
}

pub(crate) const ROLES: Roles<Role> = Roles(&[
    (Role::Bench, "bench"),
    (Role::Gateway, "gateway"),
    (Role::Service, "service"),
    (Role::Generator, "generator"),
    (Role::Crowd, "crowd"),
    (Role::ExtProcStub, "ext-proc-stub"),
]);

// === impl Role ===

impl Role {
    /// This executable in the role.
    pub(crate) fn command(self) -> io::Result<Command> {
        ROLES.command(self)
    }
}
