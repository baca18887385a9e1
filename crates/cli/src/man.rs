//! `evenkeel man`: the manual pages.

use std::io::{self, Write};

use anyhow::Context;
use clap::Args;

use crate::exit::{Exit, WrongUsage};

const EXAMPLES: &str = "\
Examples:
  Read the page of a command:
    evenkeel man serve | man -l -
  Install the pages:
    evenkeel man > /usr/local/share/man/man1/evenkeel.1
    evenkeel man serve > /usr/local/share/man/man1/evenkeel-serve.1";

/// Prints a manual page.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The command that the page is about. Without one, the page is about all of them.
    command: Option<String>,
}

// === impl Man ===

impl Man {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        let mut page = Vec::new();
        clap_mangen::Man::new(self.subject()?).render(&mut page).context("cannot make the page")?;
        io::stdout().write_all(&page).context("cannot write the page to standard output")?;
        Ok(Exit::Success)
    }

    fn subject(&self) -> Result<clap::Command, WrongUsage> {
        let mut evenkeel = crate::command();
        evenkeel.build();
        let Some(name) = &self.command else { return Ok(evenkeel) };
        let found = evenkeel.find_subcommand(name).cloned();
        found.ok_or_else(|| {
            WrongUsage(format!("there is no command {name:?} to print a page about; see `evenkeel --help` for all"))
        })
    }
}
