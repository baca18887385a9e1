//! `evenkeel health`: whether a gateway or an API is ready, as an exit code for health checks.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use evenkeel_gateway::FetchLimits;

use crate::exit::{Exit, WrongUsage};
use crate::remote::{self, Access, GATEWAY, Pem, Server, kubeconfig};
use crate::terminal::print;
use crate::usage::number;

const EXAMPLES: &str = "\
Examples:
  Ask the gateway on this machine:
    evenkeel health
  Ask another one, and wait ten seconds at most:
    evenkeel health http://gateway.example:9901 --timeout 10
  Ask the API of `evenkeel serve --api-only --data-dir /data`, at the address in /data/kubeconfig:
    evenkeel health --data-dir /data
  Ask an API on another machine, whose ca.crt was copied:
    evenkeel health https://api.example:8443 --ca ca.crt";

const DATA_DIR_VARIABLE: &str = "EVENKEEL_DATA_DIR";

/// A response to a health check is one line.
const RESPONSE_BYTES_MAX: usize = 4096;

/// Checks whether a gateway or an API is ready, for health checks of containers and for scripts.
///
/// It requests /readyz, of the gateway's admin endpoint or of the API, which needs no token. That of a gateway does not check
/// upstreams; that of an API fails while its store is unavailable. The exit code is 0 if the server is ready, and 1 if it is
/// not ready or does not respond.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES, after_help = EXAMPLES)]
pub(crate) struct Health {
    /// The URL of the gateway's admin endpoint, or of the API [default: `http://127.0.0.1:9901`; with `--data-dir`, that of the
    /// API].
    #[arg(value_name = "URL")]
    server: Option<String>,

    /// CA certificates used to verify an https server, in PEM [default: those of the system].
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,

    /// The data directory of an API: its CA certificate is trusted, and it is asked unless a URL is given [default: the
    /// environment variable `EVENKEEL_DATA_DIR`, if it is set].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// How long the server may take to respond, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 3, value_parser = number::<600>)]
    timeout: u32,
}

// === impl Health ===

impl Health {
    pub(crate) fn run(&self) -> Result<Exit> {
        let access = self.access()?;
        let limits = FetchLimits { time: Duration::from_secs(self.timeout.into()), bytes: RESPONSE_BYTES_MAX };
        let server = Server::new(&access, limits).map_err(|error| WrongUsage(format!("{error:#}")))?;
        let runtime = remote::runtime()?;
        let (status, body) = runtime.block_on(server.get("/readyz"))?;
        if !status.is_success() {
            bail!("{} is not ready: {status}: {}", server.url(), String::from_utf8_lossy(&body).trim());
        }
        print(format!("{} is ready\n", server.url()))?;
        Ok(Exit::Success)
    }

    /// Which server is asked, and by what it is verified. Nothing is sent that only the server may see.
    fn access(&self) -> Result<Access, WrongUsage> {
        let named = || std::env::var_os(DATA_DIR_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let data_dir = self.data_dir.clone().or_else(named);
        let server = match (&self.server, &data_dir) {
            (Some(url), _) => url.clone(),
            (None, None) => GATEWAY.to_owned(),
            (None, Some(folder)) => {
                let file = folder.join("kubeconfig");
                kubeconfig::read(&[file], None).map_err(|error| WrongUsage(format!("--data-dir: {error:#}")))?.server
            }
        };
        let of_data_dir = || data_dir.filter(|_| server.starts_with("https:")).map(|folder| folder.join("ca.crt"));
        let ca = self.ca.clone().or_else(of_data_dir);
        Ok(Access { server, ca: ca.map(Pem::File), ..Access::default() })
    }
}
