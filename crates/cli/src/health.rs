//! `evenkeel health`: whether a gateway is ready, as an exit code for health checks.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use evenkeel_gateway::FetchLimits;
use tokio::runtime;

use crate::exit::{Exit, WrongUsage};
use crate::remote::{Access, Server};
use crate::terminal::print;
use crate::usage::number;

const EXAMPLES: &str = "\
Examples:
  Ask the gateway on this machine:
    evenkeel health
  Ask another one, and wait ten seconds at most:
    evenkeel health http://gateway.example:9901 --timeout 10";

/// A response to a health check is one line.
const RESPONSE_BYTES_MAX: usize = 4096;

/// Checks whether a gateway is ready, for health checks of containers and for scripts.
///
/// It requests /readyz of the admin endpoint, which needs no token and does not check upstreams. The exit code is 0 if the
/// gateway is ready, and 1 if it is not ready or does not respond.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Health {
    /// The URL of the gateway's admin endpoint.
    #[arg(value_name = "URL", default_value = "http://127.0.0.1:9901")]
    gateway: String,

    /// How long the gateway may take to respond, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = number::<600>)]
    timeout: u32,
}

// === impl Health ===

impl Health {
    pub(crate) fn run(&self) -> Result<Exit> {
        let access = Access { server: self.gateway.clone(), ..Access::default() };
        let limits = FetchLimits { time: Duration::from_secs(self.timeout.into()), bytes: RESPONSE_BYTES_MAX };
        let server = Server::new(&access, limits).map_err(|error| WrongUsage(format!("{error:#}")))?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
        let (status, body) = runtime.block_on(server.get("/readyz"))?;
        if !status.is_success() {
            bail!("{} is not ready: {status}: {}", server.url(), String::from_utf8_lossy(&body).trim());
        }
        print(format!("{} is ready\n", server.url()))?;
        Ok(Exit::Success)
    }
}
