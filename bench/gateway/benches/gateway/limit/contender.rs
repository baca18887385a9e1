//! Those who protect the service: the gateway with a limit that finds itself, with one that is right, with none, and Envoy.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use evenkeel_process::{Process, free_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::contestant::Contestant;
use crate::envoy::{self, Filter};
use crate::role::Role;

/// Who protects the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Contender {
    Auto,
    Right,
    Unlimited,
    Envoy,
}

/// One of them that runs.
#[derive(Debug)]
pub(super) struct Running {
    contender: Contender,
    pub(super) process: Process,
    admin: SocketAddr,
    _folder: TempDir,
}

// === impl Contender ===

impl Contender {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Auto => "evenkeel, auto",
            Self::Right => "evenkeel, the right number (20)",
            Self::Unlimited => "no limit",
            Self::Envoy => "envoy, adaptive_concurrency",
        }
    }

    pub(super) fn start(self, slots: u32, upstream: SocketAddr) -> io::Result<Running> {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let (address, admin) = (free_address()?, free_address()?);
        let concurrency = match self {
            Self::Auto => "auto".to_owned(),
            Self::Right => slots.to_string(),
            Self::Unlimited => "100000".to_owned(),
            Self::Envoy => {
                let file = folder.path().join("envoy.json");
                fs::write(&file, envoy_settings(address, admin, upstream).to_string())?;
                let mut command = Contestant::Envoy.command();
                command.arg("--config-path").arg(file);
                command.args(["--concurrency", "1", "--disable-hot-restart", "--log-level", "error"]);
                let process = Process::start(&mut command, address, folder.path())?;
                return Ok(Running { contender: self, process, admin, _folder: folder });
            }
        };
        let file = folder.path().join("evenkeel.yaml");
        // Clients give up after half a second.
        fs::write(
            &file,
            format!(
                "listen: [{{address: '{address}'}}]\nlog: {{filter: warn}}\ntimeouts: {{queue: 300ms}}\nworkers: 1\n"
            ),
        )?;
        let mut command = Role::Gateway.command()?;
        command.args(["serve", "--admin-listen", &admin.to_string(), "--concurrency", &concurrency]);
        command.arg("--upstream").arg(format!("http://{upstream}")).arg("--config").arg(file);
        let process = Process::start(&mut command, address, folder.path())?;
        Ok(Running { contender: self, process, admin, _folder: folder })
    }
}

/// As the example of its documentation has it, with one thread like the gateway.
fn envoy_settings(address: SocketAddr, admin: SocketAddr, upstream: SocketAddr) -> Value {
    let limits = (envoy::UNLIMITED, envoy::UNLIMITED);
    let mut settings = envoy::settings(address, upstream, &Filter::AdaptiveConcurrency, None, limits);
    settings["admin"] = json!({ "address": envoy::socket_address(admin) });
    settings
}

// === impl Running ===

impl Running {
    /// Its limit now, if it has one that changes.
    pub(super) fn limit(&self) -> Option<f64> {
        let (path, marker) = match self.contender {
            Contender::Auto => ("/debug/status", "\"concurrency\":"),
            Contender::Envoy => ("/stats?filter=concurrency_limit", "concurrency_limit: "),
            Contender::Right | Contender::Unlimited => return None,
        };
        let page = self.get(path).ok()?;
        let digits = page.split(marker).nth(1)?.trim_start();
        digits.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
    }

    fn get(&self, path: &str) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.admin)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin)?;
        let mut page = String::new();
        stream.read_to_string(&mut page)?;
        Ok(page)
    }
}
