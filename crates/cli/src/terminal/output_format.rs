//! How a command prints its result.

use clap::ValueEnum;

/// The value of `-o`, for commands that print for people and for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for people.
    Text,
    /// JSON for programs.
    Json,
}
