//! `evenkeel simulate`: what a configuration does to a workload, without a server and without waiting.

mod charts;
mod html;
mod inputs;
mod progress;
mod routes;
mod runs;
mod table;

use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::Result;
use clap::Args;
use evenkeel_api::Preset;
use evenkeel_api::bootstrap::KubernetesVersion;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::Borrowing;
use serde_json::Value;

use crate::exit::Exit;
use crate::remote::ClusterFlags;
use crate::report_page;
use crate::subcommand::complain;
use crate::terminal::{ColorChoice, OutputFormat, pretty_json, print};
use crate::usage::{concurrency, number};
use inputs::Inputs;
use runs::{Figures, Simulated};

const EXAMPLES: &str = "\
Examples:
  Try the levels, matches and routes of a gateway's settings:
    evenkeel simulate workload.yaml --config evenkeel.yaml
  Compare two configurations on the same arrivals, with charts:
    evenkeel simulate workload.yaml --objects old.yaml --against new.yaml --report report.html
  What a change would do to a cluster:
    evenkeel simulate workload.yaml --context production --against new.yaml
  The requests of an incident under other objects, from a dump of the flight recorder:
    evenkeel simulate incident.ekf --against new.yaml
  Medians and ranges of ten runs, for a program:
    evenkeel simulate workload.yaml --objects objects.yaml --runs 10 -o json";

/// Simulates a workload: which flows wait, which are rejected, and how many seats each gets.
///
/// The simulation runs the engine of the gateway with a virtual clock: a minute of traffic takes a fraction of a second.
/// The same input gives the same figures on every machine. With --against, two configurations get the same arrivals. The
/// format of workloads is explained in docs/simulate.md; examples are in examples/workloads.
///
/// With `--config`, everything is as the settings file of a gateway says: objects or `levels` and `match`, preset, seats, borrowing,
/// and the costs of routes. Otherwise the preset is `plain`, as that of `serve`; for a Kubernetes API, add `--preset kubernetes`.
///
/// A dump of the flight recorder (/debug/flight) is a workload too: its requests arrive when they did. Objects, seats, borrowing and preset are those of its
/// gateway, unless flags or --config say otherwise.
///
/// With --context or --kubeconfig, the objects are those of a cluster. As `kubectl evenkeel simulate`, without --objects and --config, they are those
/// of kubectl's current context.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Simulate {
    /// The workload: a file, a dump of the flight recorder, or `-` for standard input.
    #[arg(value_name = "WORKLOAD")]
    workload: PathBuf,

    /// The settings file of a gateway.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Flow schemas and priority levels: files, directories, or `-` for standard input [default: those of --config, of the dump, or of the preset].
    #[arg(long, value_name = "FILE", num_args = 1..)]
    objects: Vec<PathBuf>,

    #[command(flatten)]
    cluster: ClusterFlags,

    /// Whose objects are simulated without --objects under the preset `kubernetes`: a release of Kubernetes [default: the newest known].
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<KubernetesVersion>,

    /// Other objects to compare with, on the same arrivals.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    against: Vec<PathBuf>,

    /// How many seats the server has, or `auto` or `auto:MIN..MAX`: as many as it finds out to be right
    /// [default: as --config says, or auto; 600 with --preset kubernetes].
    #[arg(long, visible_alias = "seats", value_name = "N", value_parser = concurrency)]
    concurrency: Option<Concurrency>,

    /// How levels borrow seats: `periodic`, as in Kubernetes, or `immediate` [default: that of --config, or of the preset].
    #[arg(long, value_name = "MODE")]
    borrowing: Option<Borrowing>,

    /// The kind of server: `kubernetes` or `plain`. It decides how paths are interpreted, which verbs rules may have, how seats
    /// are divided, and the `Retry-After` of rejected requests [default: that of --config, or plain; kubernetes for a cluster].
    #[arg(long, value_name = "PRESET", value_parser = Preset::from_str)]
    preset: Option<Preset>,

    /// The seed of the random numbers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Repeat the simulation with this many seeds, and print medians and ranges.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number::<1000>)]
    runs: u32,

    /// Write a page with tables and charts. It is one file and needs no network.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// How the figures are printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,

    /// When the output is coloured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

// === impl Simulate ===

impl Simulate {
    pub(crate) fn run(&self) -> Result<Exit> {
        let inputs = Inputs::read(self)?;
        let simulated = Simulated::run(&inputs, self.seed, self.runs);
        let figures = simulated.figures();
        let text = match self.output {
            OutputFormat::Json => pretty_json(&combined(&figures))?,
            OutputFormat::Text => table::tables(&inputs, &figures, self.color.paint(&io::stdout())),
        };
        print(&text)?;
        if self.output == OutputFormat::Text {
            let meaning = "the simulated server finds out how many seats are right";
            inputs.preset.tell(self.concurrency.as_ref(), meaning);
        }
        let early = figures.iter().find_map(|figures| figures.median.get("endedEarly"));
        if let Some(early) = early {
            complain(&table::ended_early(&figures[0].median, early));
        }
        if let Some(file) = &self.report {
            report_page::write(file, &html::page(&inputs, &simulated, &figures))?;
        }
        Ok(if early.is_some() { Exit::Failure } else { Exit::Success })
    }
}

/// The figures of the first configuration, and under `against` those of the second.
fn combined(figures: &[Figures]) -> Value {
    let mut values = figures.iter().map(Figures::to_json);
    let mut first = values.next().unwrap_or_default();
    if let (Some(second), Value::Object(members)) = (values.next(), &mut first) {
        members.insert("against".to_owned(), second);
    }
    first
}
