//! `evenkeel man`: the manual pages.

use std::io::{self, Write};

use anyhow::Context;
use clap::Args;
use clap::builder::Resettable;

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
        let page = page(self.subject()?).context("cannot make the page")?;
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

/// The page of a command. What comes after its help has sections of its own, with lines that stay as they are: they are there
/// to be copied.
fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let bare = command.after_help(Resettable::Reset).after_long_help(Resettable::Reset);
    let mut page = Vec::new();
    clap_mangen::Man::new(bare).source(concat!("evenkeel ", env!("CARGO_PKG_VERSION"))).render(&mut page)?;
    for section in after.split("\n\n") {
        let Some((heading, lines)) = section.split_once(":\n") else { continue };
        writeln!(page, ".SH {}\n.nf", heading.to_uppercase())?;
        for line in lines.lines() {
            writeln!(page, "{}", line.replace('\\', "\\e").replace('-', "\\-"))?;
        }
        writeln!(page, ".fi")?;
    }
    Ok(page)
}
