//! The commands and how one of them is chosen and run.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::exit::Exit;
use crate::terminal::{printable, written};
use crate::{
    check, completions, convert, demo, explain, health, man, replay, schema, serve, shadow, simulate, top, usage,
};

const EXAMPLES: &str = "\
Examples:
  See what it does, without any setup:
    evenkeel demo
  Protect a service that can process 50 requests at a time:
    evenkeel serve --upstream http://127.0.0.1:9000 --concurrency 50";

/// Keeps HTTP services on an even keel when too much traffic arrives at once.
///
/// Requests are sorted into priority levels, each with its share of the service's seats, and inside a level the requests
/// of different clients are queued fairly, as Kubernetes does for its API server.
#[derive(Debug, Parser)]
#[command(name = "evenkeel", version, after_long_help = EXAMPLES, after_help = EXAMPLES, max_term_width = 120)]
struct Evenkeel {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(Box<serve::Serve>),
    Demo(demo::Demo),
    Check(check::Check),
    Explain(Box<explain::Explain>),
    Top(Box<top::TopCommand>),
    Shadow(shadow::Shadow),
    Health(health::Health),
    Convert(convert::Convert),
    Simulate(Box<simulate::Simulate>),
    Replay(Box<replay::Replay>),
    Schema(schema::Schema),
    Completions(completions::Completions),
    Man(man::Man),
}

/// The binary's name, with all its commands and flags.
pub fn command() -> clap::Command {
    Evenkeel::command()
}

/// Runs the binary with these arguments, of which the first is its own name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = command().bin_name(usage::bin_name(&arguments));
    let matches = command.try_get_matches_from(&arguments);
    match matches.and_then(|matches| Evenkeel::from_arg_matches(&matches)) {
        Ok(evenkeel) => evenkeel.command.run().unwrap_or_else(|error| failed(&error)),
        Err(error) if error.use_stderr() => {
            complain(&usage::sentence(&error, &arguments));
            Exit::Usage
        }
        Err(help) => written(help.print()).map_or_else(|error| failed(&error), |_| Exit::Success),
    }
    .into()
}

/// Prints an error, and ends as it asks for.
fn failed(error: &anyhow::Error) -> Exit {
    complain(&format!("{error:#}"));
    Exit::of(error)
}

/// Prints an error message, which may quote clients and servers. A failure to print it is ignored.
pub(crate) fn complain(what: &str) {
    let lines: Vec<_> = what.lines().map(printable).collect();
    let _ = writeln!(io::stderr(), "evenkeel: {}", lines.join("\n"));
}

// === impl Command ===

impl Command {
    fn run(self) -> anyhow::Result<Exit> {
        match self {
            Self::Serve(serve) => serve.run(),
            Self::Demo(demo) => demo.run(),
            Self::Check(check) => check.run(),
            Self::Explain(explain) => explain.run(),
            Self::Top(top) => top.run(),
            Self::Shadow(shadow) => shadow.run(),
            Self::Health(health) => health.run(),
            Self::Convert(convert) => convert.run(),
            Self::Simulate(simulate) => simulate.run(),
            Self::Replay(replay) => replay.run(),
            Self::Schema(schema) => schema.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }
    }
}
