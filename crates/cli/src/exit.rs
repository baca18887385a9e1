//! How the binary ends: its exit codes, and errors that choose one.

use std::process::ExitCode;

/// The exit codes of the binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything went well.
    Success = 0,
    /// Something failed while it started or ran, or a tool has findings.
    Failure = 1,
    /// The command line or the settings are wrong, or a tool could not do its work.
    Usage = 2,
    /// The gateway shut down before all running requests had finished.
    Cut = 3,
}

/// The command line or the settings are wrong, or a tool cannot do its work with them: ends with [`Exit::Usage`].
#[derive(Debug)]
pub(crate) struct WrongUsage(pub(crate) String);

// === impl Exit ===

impl Exit {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Success, Self::Failure, Self::Usage, Self::Cut];

    /// The number that the caller of the binary sees.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The meaning of the code for the caller.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Success => "success, or shut down cleanly",
            Self::Failure => {
                "something failed at startup or later, or a tool has findings; the message names the cause and what to do"
            }
            Self::Usage => {
                "a flag, the settings or the objects are wrong, or a tool could not run; the message names the place and the cause"
            }
            Self::Cut => "shut down before all running requests had finished; the rest were cut off",
        }
    }

    /// The exit code that an error asks for.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        if error.is::<WrongUsage>() { Self::Usage } else { Self::Failure }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

// === impl WrongUsage ===

impl std::fmt::Display for WrongUsage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for WrongUsage {}
