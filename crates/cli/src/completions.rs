//! `evenkeel completions`: lets a shell complete commands and flags.

use clap::Args;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::terminal::print;

const EXAMPLES: &str = "\
Examples:
  For this session of bash:
    source <(evenkeel completions bash)
  For good, in fish:
    evenkeel completions fish > ~/.config/fish/completions/evenkeel.fish";

/// Prints a script that lets a shell complete commands and flags.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell that the script is for.
    shell: Shell,
}

// === impl Completions ===

impl Completions {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut crate::command(), "evenkeel", &mut script);
        print(script)?;
        Ok(Exit::Success)
    }
}
