//! `evenkeel top`: levels, flows, and who delays whom, live in a terminal.

mod dump_table;
mod explain;
mod figures;
mod grid;
mod keys;
mod kube;
mod lines;
mod live;
mod once;
mod palette;
mod queues;
mod screen;
mod source;
mod state;
mod stream;
mod tabs;
mod view;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Args;
use evenkeel_gateway::observe::admin::TOKEN_VARIABLE;
use evenkeel_gateway::observe::frame::Frame;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::exit::{Exit, WrongUsage};
use crate::remote::{self, Access, GATEWAY, Pem, Server, kubeconfig};
use crate::shadow;
use crate::signals::Signals;
use crate::terminal::{self, ColorChoice, OutputFormat, Reader, print, printable_json};
use crate::usage::{is_kubectl_plugin, number};
use kube::DumpUse;
use palette::Palette;
use source::{LIMITS, ServerKind, Source, Update, Wanted};
use state::Top;

const EXAMPLES: &str = "\
Examples:
  A gateway on this machine:
    evenkeel top
  Another gateway, which needs a token:
    evenkeel top http://gateway.example:9901 --token-file admin-token
  A Kubernetes API server, through `kubectl proxy`:
    evenkeel top --kube http://127.0.0.1:8001
  All API servers of a cluster, added up:
    evenkeel top --kube https://10.0.0.1:6443 --kube https://10.0.0.2:6443 --token-file token --certificate-authority ca.crt
  An API server of your kubeconfig:
    evenkeel top --context production
  What the shadow of a gateway decides:
    evenkeel top --shadow
  One frame as text, or frames for a program:
    evenkeel top --once
    evenkeel top -o json";

const ACCESS: &str = "Access to the server";
/// The width of text that does not go to a terminal.
const PIPE_WIDTH: usize = 160;
/// How long `--once` waits, besides the interval.
const PATIENCE: Duration = Duration::from_secs(30);

/// Shows levels, flows, who delays whom, and queues, live in a terminal.
///
/// The data comes from a gateway or, with --kube, --context or --kubeconfig, from /metrics and the debug dumps of a Kubernetes API
/// server. As `kubectl evenkeel top`, it is that of kubectl's current context unless you name another. The command only reads.
/// Press ? for the keys.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct TopCommand {
    /// The URL of a gateway's admin endpoint [default: `http://127.0.0.1:9901`].
    #[arg(value_name = "URL", conflicts_with_all = ["kube", "kubeconfig", "context"])]
    gateway: Option<String>,

    /// The URL of a Kubernetes API server. Given several times, what all of them do is added up.
    #[arg(long, value_name = "URL")]
    kube: Vec<String>,
    /// A kubeconfig that names an API server [default: $KUBECONFIG, or ~/.kube/config].
    #[arg(long, value_name = "FILE", conflicts_with = "kube")]
    kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig [default: the current one].
    #[arg(long, value_name = "NAME", conflicts_with = "kube")]
    context: Option<String>,
    /// How often to read from an API server, in seconds. A gateway sends a frame every second.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = number::<600>)]
    interval: u32,
    /// Do not read the debug dumps of an API server, which holds a lock while it writes them. Shows no flows, delays and queues.
    #[arg(long)]
    no_dumps: bool,

    /// A file with a bearer token [default for a gateway: the variable `EVENKEEL_ADMIN_TOKEN`].
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    token_file: Option<PathBuf>,
    /// CA certificates used to verify the server, in PEM [default: the system's].
    #[arg(long, value_name = "FILE", help_heading = ACCESS)]
    certificate_authority: Option<PathBuf>,
    /// A client certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "client_key", help_heading = ACCESS)]
    client_certificate: Option<PathBuf>,
    /// Its private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "client_certificate", help_heading = ACCESS)]
    client_key: Option<PathBuf>,

    /// Show the report of the gateway's shadow instead, anew every two seconds, as `evenkeel shadow` prints it.
    #[arg(long, conflicts_with_all = ["kube", "kubeconfig", "context"])]
    shadow: bool,
    /// Print one frame and exit, instead of taking over the terminal.
    #[arg(long)]
    once: bool,
    /// How frames are printed. JSON has one frame per line, with the fields of the gateway's /debug/frames.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,
    /// When text is coloured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

// === impl TopCommand ===

impl TopCommand {
    pub(crate) fn run(&self) -> Result<Exit> {
        let is_screen = !self.once && self.output == OutputFormat::Text;
        if is_screen && !io::stdout().is_terminal() {
            let why = "standard output is not a terminal; use --once for one frame as text, or -o json for a stream of frames";
            return Err(WrongUsage(why.to_owned()).into());
        }
        if self.shadow {
            return self.show_shadow(is_screen);
        }
        let source = self.source().map_err(|error| WrongUsage(format!("{error:#}")))?;
        let runtime = remote::runtime()?;
        runtime.block_on(async {
            // A credential plugin may have questions, which the screen would hide, and a signal ends it as usual.
            source.server.sign_in().await.map_err(|error| WrongUsage(format!("{error:#}")))?;
            let mut signals = Signals::listen()?;
            if is_screen {
                let palette = if self.color.paint(&io::stdout()).is_on() { Palette::Color } else { Palette::Plain };
                return live::run(source, palette, &mut signals).await;
            }
            tokio::select! {
                done = self.print(source) => done,
                () = signals.end() => Ok(Exit::Success),
            }
        })
    }

    /// The report of the shadow: on a screen again and again, and otherwise once.
    fn show_shadow(&self, is_screen: bool) -> Result<Exit> {
        let source = self.source().map_err(|error| WrongUsage(format!("{error:#}")))?;
        let runtime = remote::runtime()?;
        let pause = Duration::from_secs(self.interval.into());
        runtime.block_on(async {
            let mut signals = Signals::listen()?;
            let show = shadow::follow(&source.server, self.output, self.color, is_screen.then_some(pause));
            tokio::select! {
                done = show => done,
                () = signals.end() => Ok(Exit::Success),
            }
        })
    }

    fn source(&self) -> Result<Source> {
        let named = self.kube.first().or(self.gateway.as_ref());
        let is_of_kubeconfig =
            self.kubeconfig.is_some() || self.context.is_some() || named.is_none() && is_kubectl_plugin();
        let is_kube = !self.kube.is_empty() || is_of_kubeconfig;
        let file = |path: &Option<PathBuf>| path.clone().map(Pem::File);
        let mut access = if is_of_kubeconfig {
            kubeconfig::read(&kubeconfig::paths(self.kubeconfig.as_deref())?, self.context.as_deref())?
        } else {
            Access { server: named.map_or(GATEWAY, String::as_str).to_owned(), ..Access::default() }
        };
        let token = match &self.token_file {
            Some(path) => Some(kubeconfig::token_of(path)?),
            // It is a gateway's, and no other server gets to see it.
            None if is_kube => None,
            None => std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()),
        };
        access.token = token.or(access.token);
        access.ca = file(&self.certificate_authority).or(access.ca);
        access.certificate = file(&self.client_certificate).or(access.certificate);
        access.key = file(&self.client_key).or(access.key);
        let server = Server::new(&access, LIMITS)?;
        let others = self.kube.iter().skip(1).map(|url| {
            access.server.clone_from(url);
            Server::new(&access, LIMITS)
        });
        let others = others.collect::<Result<Vec<_>>>()?;
        let interval = Duration::from_secs(self.interval.into());
        let dumps = if self.no_dumps { DumpUse::Leave } else { DumpUse::Read };
        Ok(Source {
            server,
            others,
            kind: if is_kube { ServerKind::Kube { interval, dumps } } else { ServerKind::Gateway },
        })
    }

    /// Prints one frame, or frames as JSON until it is stopped.
    async fn print(&self, source: Source) -> Result<Exit> {
        let url = source.name();
        let mut top = Top::new(&url, source.kind);
        let wants_queues = self.output == OutputFormat::Text && !self.no_dumps;
        let (_wanted, wanted) = watch::channel(Wanted { queues: wants_queues });
        let (sender, mut updates) = mpsc::channel(16);
        tokio::spawn(source.run(sender, wanted));
        let patience = PATIENCE + Duration::from_secs(self.interval.into());
        let mut has_queues = !wants_queues;
        loop {
            let update = timeout(patience, updates.recv()).await.ok().flatten();
            let update = update.ok_or_else(|| WrongUsage(format!("{url} has sent no frame for {patience:?}")))?;
            has_queues |= matches!(update, Update::Queues(_));
            match &update {
                Update::Lost { why, .. } if self.once => {
                    return Err(WrongUsage(format!("cannot read from {url}: {why}")).into());
                }
                Update::Lost { why, retry_in } => {
                    let _ = writeln!(io::stderr(), "evenkeel: cannot read from {url}: {why}; retrying in {retry_in:?}");
                }
                // The first frame of an API server has no rates yet.
                Update::Frame(frame)
                    if self.output == OutputFormat::Json
                        && frame.interval_ms > 0
                        && (print_json(frame)? == Reader::Gone || self.once) =>
                {
                    return Ok(Exit::Success);
                }
                _ => {}
            }
            top.update(update);
            let is_complete = has_queues && top.frame().is_some_and(|frame| frame.interval_ms > 0);
            if self.once && is_complete {
                let stdout = io::stdout();
                let width = if stdout.is_terminal() { terminal::width(&stdout) } else { PIPE_WIDTH };
                let text = once::text(&top, width, self.color.paint(&stdout));
                print(text)?;
                return Ok(Exit::Success);
            }
        }
    }
}

/// Prints a frame as a line.
fn print_json(frame: &Frame) -> Result<Reader> {
    let json = serde_json::to_string(frame).context("cannot encode a frame as JSON")?;
    print(format!("{}\n", printable_json(&json)))
}
