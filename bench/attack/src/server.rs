//! The real `evenkeel serve` as a child process: the gateway or the API, its memory, and how it ends.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use evenkeel_process::{Process, free_address};
use tempfile::TempDir;

/// The seats of the gateway under attack.
pub(crate) const SEATS: u32 = 20;

/// One level with all seats.
pub(crate) const EVERYBODY: &str = include_str!("everybody.yaml");

/// The files of a gateway, in its folder.
pub(crate) const OBJECTS: &str = "objects.yaml";
pub(crate) const SETTINGS: &str = "evenkeel.yaml";

/// Longer than `timeouts.drain`, after which it ends by itself.
const ENDING_MAX: Duration = Duration::from_secs(40);

/// A server that runs. It ends when it is dropped.
pub(crate) struct Server {
    process: Process,
    /// The resident memory before the attack, in KiB.
    idle: u64,
    pub(crate) folder: TempDir,
}

/// What a gateway is given beside its upstream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// What is spoken to the upstream.
    pub(crate) protocol: &'a str,
    pub(crate) objects: &'a str,
}

/// How the servers of all attacks have ended.
#[derive(Debug, Default)]
pub(crate) struct Endings {
    pub(crate) servers: usize,
    pub(crate) panics: usize,
    /// Servers that did not stop with exit code 0.
    pub(crate) unclean: usize,
}

/// The program under attack, which is built with this one.
pub(crate) fn program() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("evenkeel"))
}

// === impl Setup ===

impl Default for Setup<'_> {
    fn default() -> Self {
        Self { protocol: "auto", objects: EVERYBODY }
    }
}

// === impl Server ===

impl Server {
    /// A gateway in front of an upstream, which gets HTTP/2 for gRPC and HTTP/1.1 for everything else.
    pub(crate) fn gateway(upstream: SocketAddr) -> Result<Self> {
        Self::gateway_with(upstream, Setup::default())
    }

    /// The same with another setup.
    pub(crate) fn gateway_with(upstream: SocketAddr, setup: Setup<'_>) -> Result<Self> {
        Self::start("--listen", |command, folder| {
            let Setup { protocol, objects } = setup;
            let settings = format!("upstreams: [{{url: 'http://{upstream}', protocol: {protocol}}}]\n");
            fs::write(folder.path().join(OBJECTS), objects)?;
            fs::write(folder.path().join(SETTINGS), settings)?;
            command.args(["--admin-listen", "none", "--config"]).arg(folder.path().join(SETTINGS));
            command.args(["--concurrency", &SEATS.to_string(), "--objects"]).arg(folder.path().join(OBJECTS));
            Ok(())
        })
    }

    /// The API alone, with people beside the administrator, and with objects.
    pub(crate) fn api(tokens: &str, objects: &str) -> Result<Self> {
        Self::start("--api-listen", |command, folder| {
            let file = |name: &str, text: &str| {
                let path = folder.path().join(name);
                fs::write(&path, text).map(|()| path)
            };
            command.args(["--api-only", "--data-dir"]).arg(folder.path().join("data"));
            command.arg("--token-file").arg(file("tokens.csv", tokens)?);
            command.arg("--objects").arg(file("objects.yaml", objects)?);
            Ok(())
        })
    }

    fn start(listen: &str, configure: impl FnOnce(&mut Command, &TempDir) -> Result<()>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("evenkeel-attack-").tempdir()?;
        let address = free_address()?;
        let mut command = Command::new(program()?);
        command.args(["serve", "--log-filter", "warn", listen, &address.to_string()]);
        configure(&mut command, &folder)?;
        let process = Process::start(&mut command, address, folder.path())
            .context("cannot start the server; build it with `cargo build --release --package evenkeel-cli`")?;
        let idle = process.resident()?;
        Ok(Self { process, idle, folder })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// What it takes now counts as idle.
    pub(crate) fn is_idle_now(&mut self) -> Result<()> {
        self.idle = self.process.resident()?;
        Ok(())
    }

    /// The most memory that it has taken so far, in MB above what it took when it was idle.
    pub(crate) fn memory_above_idle_mb(&self) -> Result<f64> {
        Ok(self.process.resident_max()?.saturating_sub(self.idle) as f64 / 1024.0)
    }

    pub(crate) fn terminate(&self) -> Result<()> {
        Ok(self.process.terminate()?)
    }

    /// Waits until it has ended after `SIGTERM`, and notes how.
    pub(crate) fn ended(mut self, endings: &mut Endings) -> Result<()> {
        let status = self.process.ended(ENDING_MAX)?;
        let output = self.process.output()?;
        endings.servers += 1;
        endings.panics += output.matches("panicked at").count();
        endings.unclean += usize::from(!status.success());
        if !status.success() || output.contains("panicked at") {
            println!("a server ended with {status}; its output:\n{output}");
        }
        Ok(())
    }

    /// Ends it with `SIGTERM`, and notes how it ends.
    pub(crate) fn end(self, endings: &mut Endings) -> Result<()> {
        if self.terminate().is_err() {
            bail!("the server has ended by itself; its output:\n{}", self.process.output()?);
        }
        self.ended(endings)
    }
}
