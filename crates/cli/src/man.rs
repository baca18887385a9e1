//! `evenkeel man`: the manual pages.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::Resettable;

use crate::exit::{Exit, WrongUsage};
use crate::terminal::print;

const EXAMPLES: &str = "\
Examples:
  Read the page of a command:
    evenkeel man serve | man -l -
  Install the pages of all commands:
    evenkeel man --directory /usr/local/share/man/man1";

/// Prints a manual page, or writes all of them to files.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The command to describe. Default: all commands.
    command: Option<String>,

    /// Write the pages of all commands to files in this directory, and print nothing. The directory must exist.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    directory: Option<PathBuf>,
}

// === impl Man ===

impl Man {
    pub(crate) fn run(&self) -> anyhow::Result<Exit> {
        if let Some(directory) = &self.directory {
            return write_all(directory);
        }
        let page = page(self.subject()?).context("cannot generate the manual page")?;
        print(page)?;
        Ok(Exit::Success)
    }

    fn subject(&self) -> Result<clap::Command, WrongUsage> {
        let mut evenkeel = crate::command();
        evenkeel.build();
        let Some(name) = &self.command else { return Ok(evenkeel) };
        let found = evenkeel.find_subcommand(name).cloned();
        found.ok_or_else(|| WrongUsage(format!("there is no command {name:?}; see `evenkeel --help` for all commands")))
    }
}

fn write_all(directory: &Path) -> anyhow::Result<Exit> {
    if !directory.is_dir() {
        let fault = if directory.exists() {
            format!("{} is not a directory; name another one", directory.display())
        } else {
            format!("the directory {} does not exist; create it with `mkdir -p {0}`", directory.display())
        };
        return Err(WrongUsage(fault).into());
    }
    let mut evenkeel = crate::command();
    evenkeel.build();
    let commands = evenkeel.get_subcommands().filter(|command| command.get_name() != "help").cloned();
    for command in [evenkeel.clone()].into_iter().chain(commands) {
        let name = command.get_display_name().unwrap_or(command.get_name());
        let file = directory.join(format!("{name}.1"));
        let page = page(command).context("cannot generate the manual page")?;
        fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(Exit::Success)
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
