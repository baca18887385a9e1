//! `evenkeel demo`: one greedy tenant among polite ones, without and with Evenkeel.

mod half;
mod load;
mod progress;
mod report;
mod service;
mod stage;
mod table;
mod tally;
mod tenant;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use tokio::runtime::Runtime;

use crate::exit::Exit;
use crate::signals::Signals;
use crate::usage::{address, number};
use half::Half;
use progress::Progress;
pub(crate) use report::FIELDS;
use report::{Report, summary};
use service::SampleService;
use stage::Stage;

const EXAMPLES: &str = "\
Examples:
  Half a minute that shows what Evenkeel does; then try it yourself:
    evenkeel demo
  The figures for a program, and no more:
    evenkeel demo --once -o json
  With ports of your choice:
    evenkeel demo --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:9901";

/// Shows one greedy tenant among polite ones, without and with Evenkeel.
///
/// A sample service in this process works on 8 requests at a time, 20 ms each, and gets up to four times slower for all
/// when too many requests are inside, as services do. Five polite tenants send ten requests a second each; a greedy one
/// sends on 100 connections as fast as it can. First they go to the service directly, then through a gateway. Both halves
/// are shown side by side. Then everything stays up, and the commands to try are printed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// Ends after both halves, instead of staying up.
    #[arg(long)]
    once: bool,

    /// How the figures are printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: Output,

    /// How long each half is, in seconds.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = number::<600>)]
    seconds: u32,

    /// Where the gateway listens. Port 0 is any free port.
    #[arg(long, value_name = "ADDR", default_value_t = any_port(), value_parser = address)]
    listen: SocketAddr,

    /// Where the gateway shows metrics and dumps. Port 0 is any free port.
    #[arg(long, value_name = "ADDR", default_value_t = any_port(), value_parser = address)]
    admin_listen: SocketAddr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table for people.
    Text,
    /// JSON for programs.
    Json,
}

/// How the two halves ended.
enum Played {
    ToTheEnd,
    Interrupted,
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

// === impl Demo ===

impl Demo {
    pub(crate) fn run(&self) -> Result<Exit> {
        Runtime::new().context("cannot start the threads of the demo")?.block_on(self.play())
    }

    async fn play(&self) -> Result<Exit> {
        let mut signals = Signals::listen()?;
        let service = SampleService::start().await.context("cannot start the sample service")?;
        let stage = Stage::set_up(service, self.listen, self.admin_listen).await?;
        let played = tokio::select! {
            played = self.both_halves(&stage) => played?,
            () = signals.stop() => Played::Interrupted,
        };
        match played {
            Played::Interrupted => return Ok(Exit::Cut),
            Played::ToTheEnd if self.once => {}
            Played::ToTheEnd => {
                self.invite(&stage)?;
                signals.stop().await;
            }
        }
        // Whoever asks a second time gets his way: what is left falls with the process.
        tokio::select! {
            () = stage.take_down() => Ok(Exit::Success),
            () = signals.insist() => Ok(Exit::Cut),
        }
    }

    async fn both_halves(&self, stage: &Stage) -> Result<Played> {
        let length = Duration::from_secs(self.seconds.into());
        let without = Half::run(stage.service(), length, &mut Progress::new("without Evenkeel", length)).await;
        let with = Half::run(stage.gateway(), length, &mut Progress::new("with Evenkeel", length)).await;
        self.print(&without, &with, length).context("cannot write the figures to standard output")?;
        Ok(Played::ToTheEnd)
    }

    fn print(&self, without: &Half, with: &Half, length: Duration) -> Result<()> {
        let mut stdout = io::stdout();
        match self.output {
            Output::Text => {
                writeln!(stdout, "\n{}\n{}", table::table(without, with), summary(without, with))?;
            }
            Output::Json => {
                writeln!(stdout, "{}", serde_json::to_string_pretty(&Report::new(without, with, length))?)?;
            }
        }
        Ok(())
    }

    /// Says what can be tried. It does not get between a program and its JSON.
    fn invite(&self, stage: &Stage) -> Result<()> {
        let invitation = stage.invitation();
        let written = match self.output {
            Output::Text => writeln!(io::stdout(), "\n{invitation}"),
            Output::Json => writeln!(io::stderr(), "\n{invitation}"),
        };
        written.context("cannot write the commands to try")
    }
}
