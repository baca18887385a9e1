//! What a process of this executable is there for, as its environment says.

use std::io;
use std::process::{Command, ExitCode};

/// The variable that names the role.
const VARIABLE: &str = "EVENKEEL_BENCH_ROLE";

/// What a process is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Starts the benchmark with as many open files as the system allows.
    Start,
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

/// Starts this executable again as the benchmark, with as many open files as the system allows.
pub(crate) fn start_bench() -> io::Result<ExitCode> {
    evenkeel_process::restart_with_many_files(VARIABLE, "bench")
}

// === impl Role ===

impl Role {
    pub(crate) fn of_this_process() -> Self {
        match std::env::var(VARIABLE).as_deref() {
            Ok("bench") => Self::Bench,
            Ok("gateway") => Self::Gateway,
            Ok("service") => Self::Service,
            Ok("generator") => Self::Generator,
            Ok("crowd") => Self::Crowd,
            Ok("ext-proc-stub") => Self::ExtProcStub,
            _ => Self::Start,
        }
    }

    /// This executable in the role.
    pub(crate) fn command(self) -> io::Result<Command> {
        let name = match self {
            Self::Start => "start",
            Self::Bench => "bench",
            Self::Gateway => "gateway",
            Self::Service => "service",
            Self::Generator => "generator",
            Self::Crowd => "crowd",
            Self::ExtProcStub => "ext-proc-stub",
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.env(VARIABLE, name);
        Ok(command)
    }
}
