//! `evenkeel shadow`: what requests would have got under the shadow's configuration.

mod promote;
mod text;

use std::io;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use evenkeel::shadow::ShadowReport;
use evenkeel_gateway::FetchLimits;
use serde::{Deserialize, Serialize};

use crate::exit::Exit;
use crate::remote::{self, GatewayFlags, Server, page, parsed};
use crate::terminal::{ColorChoice, OutputFormat, Reader, pretty_json, print, printable_json};

const EXAMPLES: &str = "\
Examples:
  Let a second configuration decide beside the first, without any effect on requests:
    evenkeel serve --config evenkeel.yaml --shadow new.yaml
  An hour later, see what it would have changed:
    evenkeel shadow
  The same of another gateway, as JSON:
    evenkeel shadow http://gateway.example:9901 --token-file admin-token -o json
  Let the shadow's objects take the place of those in effect:
    evenkeel shadow promote";

const ADMIN_PATH: &str = "/debug/shadow";
const FLOWS_DEFAULT: usize = 20;
/// Moves the cursor to the first line, and clears what is below.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J";
const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), bytes: 16 << 20 };

/// Shows what requests would have got under the shadow's configuration, beside what they got.
///
/// A gateway has a shadow if it was started with --shadow, or if its settings have `shadow`. The shadow decides about every request with objects
/// and a limit of its own, and changes none of them.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Shadow {
    #[command(subcommand)]
    command: Option<ShadowCommand>,
    #[command(flatten)]
    gateway: GatewayFlags,
    /// How many flows are shown, those first for which most changes.
    #[arg(long, value_name = "N", default_value_t = FLOWS_DEFAULT)]
    flows: usize,
    /// How the report is printed. JSON has the fields of the gateway's /debug/shadow.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,
    /// When text is coloured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

#[derive(Debug, Subcommand)]
enum ShadowCommand {
    Promote(promote::Promote),
}

/// The response of a gateway.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Shadows {
    /// The reports of a gateway with several services.
    OfServices {
        services: Vec<OfService>,
    },
    One(Box<ShadowReport>),
}

#[derive(Debug, Serialize, Deserialize)]
struct OfService {
    service: String,
    shadow: ShadowReport,
}

// === impl Shadow ===

impl Shadow {
    pub(crate) fn run(&self) -> Result<Exit> {
        if let Some(ShadowCommand::Promote(promote)) = &self.command {
            return promote.run();
        }
        let server = Server::new(&self.gateway.access()?, LIMITS)?;
        let runtime = remote::runtime()?;
        let shadows = runtime.block_on(shadows(&server))?;
        print(shadows.shown(self.output, self.color, self.flows)?)?;
        Ok(Exit::Success)
    }
}

/// Shows the report of a gateway: once, or on a cleared screen again and again with this pause, until its reader is gone.
pub(crate) async fn follow(
    server: &Server,
    output: OutputFormat,
    color: ColorChoice,
    pause: Option<Duration>,
) -> Result<Exit> {
    loop {
        let text = shadows(server).await?.shown(output, color, FLOWS_DEFAULT)?;
        let clear = if pause.is_some() { CLEAR_SCREEN } else { "" };
        let reader = print(format!("{clear}{text}"))?;
        let Some(pause) = pause.filter(|_| reader != Reader::Gone) else { return Ok(Exit::Success) };
        tokio::time::sleep(pause).await;
    }
}

async fn shadows(server: &Server) -> Result<Shadows> {
    parsed(server, &page(server, ADMIN_PATH).await?)
}

// === impl Shadows ===

impl Shadows {
    /// The report as it is printed.
    fn shown(&self, output: OutputFormat, color: ColorChoice, flows: usize) -> Result<String> {
        Ok(match output {
            OutputFormat::Json => printable_json(&pretty_json(self)?).into_owned() + "\n",
            OutputFormat::Text => {
                let paint = color.paint(&io::stdout());
                self.parts().map(|(service, report)| text::report(service, report, flows, paint)).collect()
            }
        })
    }

    fn parts(&self) -> impl Iterator<Item = (Option<&str>, &ShadowReport)> {
        let (services, one) = match self {
            Self::OfServices { services } => (services.as_slice(), None),
            Self::One(report) => (&[][..], Some((None, &**report))),
        };
        services.iter().map(|one| (Some(one.service.as_str()), &one.shadow)).chain(one)
    }
}
