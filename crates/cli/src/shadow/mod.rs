//! `evenkeel shadow`: what requests would have got under the shadow's configuration.

mod text;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use evenkeel::shadow::ShadowReport;
use evenkeel_gateway::FetchLimits;
use evenkeel_gateway::observe::admin::TOKEN_VARIABLE;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use tokio::runtime;

use crate::exit::Exit;
use crate::remote::{Access, GATEWAY, Pem, Server, kubeconfig};
use crate::terminal::{ColorChoice, OutputFormat, pretty_json, print, printable_json};

const EXAMPLES: &str = "\
Examples:
  Let a second configuration decide beside the first, without any effect on requests:
    evenkeel serve --config evenkeel.yaml --shadow new.yaml
  An hour later, see what it would have changed:
    evenkeel shadow
  The same of another gateway, as JSON:
    evenkeel shadow http://gateway.example:9901 --token-file admin-token -o json";

const ADMIN_PATH: &str = "/debug/shadow";
const LIMITS: FetchLimits = FetchLimits { time: Duration::from_secs(30), bytes: 16 << 20 };

/// Shows what requests would have got under the shadow's configuration, beside what they got.
///
/// A gateway has a shadow if it was started with --shadow, or if its settings have `shadow`. The shadow decides about every request with objects
/// and a limit of its own, and changes none of them.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Shadow {
    /// The URL of a gateway's admin endpoint [default: `http://127.0.0.1:9901`].
    #[arg(value_name = "URL")]
    gateway: Option<String>,
    /// How many flows are shown, those first for which most changes.
    #[arg(long, value_name = "N", default_value_t = 20)]
    flows: usize,
    /// A file with a bearer token [default: the variable `EVENKEEL_ADMIN_TOKEN`].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// CA certificates used to verify the server, in PEM [default: the system's].
    #[arg(long, value_name = "FILE")]
    certificate_authority: Option<PathBuf>,
    /// How the report is printed. JSON has the fields of the gateway's /debug/shadow.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    output: OutputFormat,
    /// When text is coloured.
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    color: ColorChoice,
}

/// What a gateway responds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Shadows {
    /// One with several services.
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
        let server = Server::new(&self.access()?, LIMITS)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        let shadows = runtime.block_on(shadows(&server))?;
        let text = match self.output {
            OutputFormat::Json => printable_json(&pretty_json(&shadows)?).into_owned() + "\n",
            OutputFormat::Text => {
                let paint = self.color.paint(&io::stdout());
                shadows.parts().map(|(service, report)| text::report(service, report, self.flows, paint)).collect()
            }
        };
        print(text)?;
        Ok(Exit::Success)
    }

    fn access(&self) -> Result<Access> {
        let variable = || std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let token = self.token_file.as_deref().map(kubeconfig::token_of).transpose()?;
        Ok(Access {
            server: self.gateway.clone().unwrap_or_else(|| GATEWAY.to_owned()),
            token: token.or_else(variable),
            ca: self.certificate_authority.clone().map(Pem::File),
            ..Access::default()
        })
    }
}

async fn shadows(server: &Server) -> Result<Shadows> {
    let url = server.url();
    let (status, body) = server.get(ADMIN_PATH).await?;
    match status {
        StatusCode::OK => {
            serde_json::from_slice(&body).with_context(|| format!("the response of {url} is not that of a gateway"))
        }
        StatusCode::UNAUTHORIZED => {
            bail!("{url} needs a token or rejects this one (401); set --token-file or the variable {TOKEN_VARIABLE}")
        }
        _ => bail!("{url}: {}", String::from_utf8_lossy(&body).trim_end()),
    }
}

// === impl Shadows ===

impl Shadows {
    fn parts(&self) -> impl Iterator<Item = (Option<&str>, &ShadowReport)> {
        let (services, one) = match self {
            Self::OfServices { services } => (services.as_slice(), None),
            Self::One(report) => (&[][..], Some((None, &**report))),
        };
        services.iter().map(|one| (Some(one.service.as_str()), &one.shadow)).chain(one)
    }
}
