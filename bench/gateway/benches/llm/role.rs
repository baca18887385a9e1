//! What a process of this executable is there for, as its environment says.

use std::io;
use std::process::{Command, ExitCode};

/// The variable that names the role.
const VARIABLE: &str = "EVENKEEL_LLM_BENCH_ROLE";

/// What a process is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Starts the benchmark with as many open files as the system allows.
    Start,
    /// Measures.
    Bench,
    /// Is `evenkeel`, with its arguments.
    Evenkeel,
    /// Sends events that say when they were sent, and responses that cost nothing.
    EventSource,
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
            Ok("evenkeel") => Self::Evenkeel,
            Ok("event-source") => Self::EventSource,
            _ => Self::Start,
        }
    }

    /// This executable in the role.
    pub(crate) fn command(self) -> io::Result<Command> {
        let name = match self {
            Self::Start => "start",
            Self::Bench => "bench",
            Self::Evenkeel => "evenkeel",
            Self::EventSource => "event-source",
        };
        let mut command = Command::new(std::env::current_exe()?);
        command.env(VARIABLE, name);
        Ok(command)
    }
}
