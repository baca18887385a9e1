//! The commands of the `evenkeel` binary: what they are called, what they take, and how they end.
//!
//! What a command does is in the crates below this one; here are its flags, its messages and its exit code, one module
//! for each command. [`run`] is the whole binary, [`command`] describes it, and [`reference()`] is the page
//! `docs/commands.md`.
//!
//! ```
//! let help = evenkeel_cli::command().render_long_help().to_string();
//! assert!(help.contains("evenkeel serve --upstream"));
//! ```

mod api;
mod check;
mod completions;
mod convert;
mod demo;
mod exit;
mod explain;
mod flight_file;
mod health;
mod man;
mod object_files;
mod percent_encoding;
mod reference;
mod remote;
mod replay;
mod report_page;
mod schema;
mod serve;
mod shadow;
mod signals;
mod simulate;
mod subcommand;
mod terminal;
mod tool_settings;
mod top;
mod usage;

pub use exit::Exit;
pub use reference::reference;
pub use subcommand::{command, run};
