//! `evenkeel demo`: greedy tenants among polite ones, without Evenkeel, with Kubernetes' queues, and with Evenkeel.

mod burst;
mod crowd;
mod fleet;
mod llm;
mod load;
mod part;
mod progress;
mod report;
mod service;
mod stage;
mod table;
mod tally;
mod tenant;
mod unknown_capacity;

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use tokio::runtime::Runtime;

use crate::exit::Exit;
use crate::serve;
use crate::signals::Signals;
use crate::terminal::{OutputFormat, Reader, pretty_json, print};
use crate::usage::{address, number};
use burst::Burst;
use crowd::{CrowdGateway, Modes};
use llm::ChatStage;
use part::{Part, Parts};
use progress::Progress;
pub(crate) use report::FIELDS;
use report::{DemoReport, summary, summary_of_many};
use service::{SAMPLE, SampleService};
use stage::Stage;
use table::table;
use unknown_capacity::UnknownCapacity;

const WITHOUT: &str = "without Evenkeel";
const WITH: &str = "with Evenkeel";
const AS_KUBERNETES: &str = "with Kubernetes' queues";

const EXAMPLES: &str = "\
Examples:
  See in about a minute what Evenkeel does, then try it yourself:
    evenkeel demo
  Print the figures as JSON and exit:
    evenkeel demo --once -o json
  See how three gateways share the seats of one service (needs etcd):
    evenkeel demo --fleet
  Choose the ports:
    evenkeel demo --listen 127.0.0.1:8080 --admin-listen 127.0.0.1:9901
  In a container, with a published port:
    evenkeel demo --listen 0.0.0.0:8080
  See what a job of 200 long requests does to people who use the same language model:
    evenkeel demo --llm
  A server of language models to try things with, without a model:
    evenkeel demo --llm-server 127.0.0.1:9000";

/// Shows greedy tenants among polite ones: without Evenkeel, with Kubernetes' queues, and with Evenkeel.
///
/// A sample service in this process works on 8 requests at a time, 20 ms each. Like many services, it gets slower with too many
/// requests: up to four times. Five polite tenants send ten requests a second each; a greedy one sends as fast as it can on 100
/// connections. Their requests first go directly to the service, and then through a gateway. A table compares both parts.
///
/// A second table compares modes of flow control, with 16 greedy tenants with 15 connections each, and the same polite tenants.
/// Their requests first go through a gateway with Kubernetes' queues (shuffle-sharded), and then through one with a queue for
/// each tenant (per-flow).
///
/// Then a burst of requests arrives at an idle priority level. The demo prints how many of them start immediately with
/// Kubernetes' borrowing (periodic) and with Evenkeel's (immediate).
///
/// A third table is about another service, whose capacity nobody told: it works on 40 requests at a time, and collapses with more. 240
/// connections send requests as fast as they can, first without a limit, and then through a gateway with `concurrency: auto`.
///
/// The demo then keeps everything running and prints commands to try. `--llm` shows language models instead, and `--fleet` a fleet.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Demo {
    /// Show instead how three gateways share the seats of one service, beside three that have a third of the seats each. Needs etcd. With
    /// `-o json`: `seats`, and for each of the `stops` of a crowd `gateway`, `thirdsPerSecond`, `fleetPerSecond` and `fleetSeats`.
    #[arg(long)]
    fleet: bool,

    /// Show instead a job of 200 long requests and three people at one server of language models: how long each waits for the first
    /// token, and how many tokens each gets, first without Evenkeel and then with `preset: llm`. With `-o json`: `summary`, and for
    /// each of the `tenants` of `withoutEvenkeel` and `withEvenkeel` `requests`, `unanswered`, `failed`, `firstTokenP50Ms`,
    /// `firstTokenP99Ms` and `tokens`.
    #[arg(long, conflicts_with = "fleet")]
    llm: bool,

    /// Exit after all parts, instead of keeping everything running.
    #[arg(long)]
    once: bool,

    /// How the figures are printed.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,

    /// How long each part is, in seconds.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = number::<600>)]
    seconds: u32,

    /// The address of the gateway. Port 0 is any free port. If other machines can reach the address, their requests may name
    /// any tenant.
    #[arg(long, value_name = "ADDR", default_value_t = any_port(), value_parser = address)]
    listen: SocketAddr,

    /// The address of the admin endpoint: dashboard, metrics and dumps. Port 0 is any free port.
    #[arg(long, value_name = "ADDR", default_value_t = any_port(), value_parser = address)]
    admin_listen: SocketAddr,

    /// Only run a sample server of language models at this address, until it is stopped. It speaks the APIs of Anthropic,
    /// Ollama and `OpenAI`, and generates words for 32 requests at a time: at 50 tokens a second for each of 24, and no more in all.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    llm_server: Option<SocketAddr>,
}

/// How the parts ended.
enum Played {
    ToTheEnd,
    /// The reader of the output is gone.
    Unread,
    Interrupted,
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

// === impl Demo ===

impl Demo {
    pub(crate) fn run(&self) -> Result<Exit> {
        serve::raise_limit();
        if let Some(address) = self.llm_server {
            return Runtime::new().context("cannot start the threads of the server")?.block_on(llm::run(address));
        }
        Runtime::new().context("cannot start the threads of the demo")?.block_on(self.play())
    }

    async fn play(&self) -> Result<Exit> {
        let mut signals = Signals::listen()?;
        if self.fleet {
            let report = tokio::select! {
                report = fleet::play(Duration::from_secs(self.seconds.into())) => report?,
                () = signals.stop() => return Ok(Exit::Cut),
            };
            print(match self.output {
                OutputFormat::Json => pretty_json(&report)?,
                OutputFormat::Text => report.text(),
            })?;
            return Ok(Exit::Success);
        }
        if self.llm {
            return self.play_llm(&mut signals).await;
        }
        let service = SampleService::start(SAMPLE).await.context("cannot start the sample service")?;
        let stage = Stage::set_up(service, self.listen, self.admin_listen).await?;
        if let Some(dashboard) = stage.dashboard() {
            progress::announce(&format!("The dashboard is at {dashboard} while the demo runs."));
        }
        let played = tokio::select! {
            played = self.all_parts(&stage) => played?,
            () = signals.stop() => Played::Interrupted,
        };
        match played {
            Played::Interrupted => return Ok(Exit::Cut),
            Played::Unread => {}
            Played::ToTheEnd if self.once => {}
            Played::ToTheEnd => {
                self.invite(&stage.invitation())?;
                signals.stop().await;
            }
        }
        // A second signal ends the process at once, with whatever still runs.
        tokio::select! {
            () = stage.take_down() => Ok(Exit::Success),
            () = signals.insist() => Ok(Exit::Cut),
        }
    }

    async fn play_llm(&self, signals: &mut Signals) -> Result<Exit> {
        let stage = ChatStage::set_up(self.listen, self.admin_listen).await?;
        if let Some(dashboard) = stage.dashboard() {
            progress::announce(&format!("The dashboard is at {dashboard} while the demo runs."));
        }
        let report = tokio::select! {
            report = stage.compare(Duration::from_secs(self.seconds.into())) => report?,
            () = signals.stop() => return Ok(Exit::Cut),
        };
        let reader = print(match self.output {
            OutputFormat::Json => pretty_json(&report)?,
            OutputFormat::Text => format!("\n{}\n", report.text()),
        })?;
        if reader == Reader::Reads && !self.once {
            self.invite(&stage.invitation())?;
            signals.stop().await;
        }
        tokio::select! {
            () = stage.take_down() => Ok(Exit::Success),
            () = signals.insist() => Ok(Exit::Cut),
        }
    }

    async fn all_parts(&self, stage: &Stage) -> Result<Played> {
        let length = Duration::from_secs(self.seconds.into());
        let run =
            async |tenants, target, title| Part::run(tenants, target, length, &mut Progress::new(title, length)).await;
        let run_many = async |modes, title| {
            let gateway = CrowdGateway::start(stage, modes).await?;
            let part = run(tenant::many_greedy(), gateway.address(), title).await;
            gateway.stop().await;
            Ok::<_, anyhow::Error>(part)
        };
        let without = run(tenant::one_greedy(), stage.service(), WITHOUT).await;
        let with = run(tenant::one_greedy(), stage.gateway(), WITH).await;
        let first = || format!("\n{}\n{}\n", table((WITHOUT, &without), (WITH, &with)), summary(&without, &with));
        if self.print_text(first)? == Reader::Gone {
            return Ok(Played::Unread);
        }
        progress::announce("Now 16 greedy tenants, in two modes of flow control:");
        let many_as_kubernetes = run_many(Modes::Kubernetes, AS_KUBERNETES).await?;
        let many_with = run_many(Modes::Evenkeel, WITH).await?;
        self.print_text(|| {
            let table = table((AS_KUBERNETES, &many_as_kubernetes), (WITH, &many_with));
            format!("\n{table}\n{}", summary_of_many(&many_as_kubernetes, &many_with))
        })?;
        let burst = Burst::measure();
        self.print_text(|| format!("\n{}\n", burst.summary()))?;
        progress::announce("Now a service whose capacity nobody told:");
        let unknown = UnknownCapacity::measure(length).await?;
        let reader = match self.output {
            OutputFormat::Text => self.print_text(|| format!("\n{}\n{}", unknown.table(), unknown.summary()))?,
            OutputFormat::Json => {
                let parts = Parts { without, with, many_as_kubernetes, many_with, burst, unknown };
                print(pretty_json(&DemoReport::new(&parts, length))?)?
            }
        };
        Ok(if reader == Reader::Gone { Played::Unread } else { Played::ToTheEnd })
    }

    /// Prints a table as soon as it is there, so that it can be read while the demo goes on.
    fn print_text(&self, text: impl FnOnce() -> String) -> Result<Reader> {
        match self.output {
            OutputFormat::Text => print(format!("{}\n", text())),
            OutputFormat::Json => Ok(Reader::Reads),
        }
    }

    /// Prints the commands to try. With JSON output, they go to standard error.
    fn invite(&self, invitation: &str) -> Result<()> {
        match self.output {
            OutputFormat::Text => {
                print(format!("\n{invitation}\n"))?;
            }
            OutputFormat::Json => {
                writeln!(io::stderr(), "\n{invitation}").context("cannot write the commands to try")?;
            }
        }
        Ok(())
    }
}
