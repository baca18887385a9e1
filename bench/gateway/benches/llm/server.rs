//! The processes: a server of language models, and a gateway in front of it. And what they say of themselves.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Error};
use std::net::SocketAddr;

use evenkeel_process::{Process, free_address};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::chat::TENANT_HEADER;
use crate::role::Role;

/// How many requests the server works on at a time.
pub(crate) const SEATS: usize = 32;

/// A process, and its folder.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) process: Process,
    admin: SocketAddr,
    _folder: TempDir,
}

/// What the server of language models has done.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelStatus {
    pub(crate) running: u64,
    pub(crate) waiting: u64,
    /// Tokens of prompts, and of responses, by tenant.
    pub(crate) tenants: BTreeMap<String, [u64; 2]>,
}

// === impl Server ===

impl Server {
    /// A server of language models that has nothing to do.
    pub(crate) fn models() -> io::Result<Self> {
        let (folder, address) = (folder()?, free_address()?);
        let mut command = Role::Evenkeel.command()?;
        command.args(["demo", "--llm-server", &address.to_string()]);
        let process = Process::start(&mut command, address, folder.path())?;
        Ok(Self { process, admin: address, _folder: folder })
    }

    /// A gateway in front of it, with further settings.
    pub(crate) fn gateway(upstream: SocketAddr, more: &str) -> io::Result<Self> {
        let (folder, address, admin) = (folder()?, free_address()?, free_address()?);
        let file = folder.path().join("evenkeel.yaml");
        let identity = format!("{{fromAddresses: [127.0.0.0/8], userHeader: {TENANT_HEADER}}}");
        let settings = format!(
            "preset: llm\nlisten: [{{address: '{address}'}}]\nadmin: {{address: '{admin}'}}\nupstreams: [{{url: 'http://{upstream}'}}]\n\
             concurrency: {SEATS}\nidentity: {{sources: [trustedHeaders: {identity}]}}\nlog: {{filter: error, rejectionsPerSecond: 0}}\n{more}"
        );
        fs::write(&file, settings)?;
        let mut command = Role::Evenkeel.command()?;
        command.arg("serve").arg("--config").arg(file);
        let process = Process::start(&mut command, address, folder.path())?;
        Ok(Self { process, admin, _folder: folder })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.process.address
    }

    /// Of a server of language models.
    pub(crate) async fn status(&self) -> io::Result<ModelStatus> {
        status_of(self.admin).await
    }

    /// Of a gateway: the sum of the series whose lines begin so and contain all of this.
    pub(crate) async fn metric(&self, begin: &str, parts: &[&str]) -> io::Result<f64> {
        let page = get(self.admin, "/metrics").await?;
        let lines = page.lines().filter(|line| line.starts_with(begin) && parts.iter().all(|part| line.contains(part)));
        Ok(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}

/// What the server of language models at this address has done.
pub(crate) async fn status_of(address: SocketAddr) -> io::Result<ModelStatus> {
    let status: Value = serde_json::from_str(&get(address, "/status").await?)?;
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let tenants = status["tenants"].as_object().into_iter().flatten();
    Ok(ModelStatus {
        running: number(&status["running"]),
        waiting: number(&status["waiting"]),
        tenants: tenants
            .map(|(name, of)| (name.clone(), [number(&of["promptTokens"]), number(&of["tokens"])]))
            .collect(),
    })
}

pub(crate) fn folder() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()
}

async fn get(address: SocketAddr, path: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
    let mut response = String::new();
    stream.read_to_string(&mut response).await?;
    let (_, body) =
        response.split_once("\r\n\r\n").ok_or_else(|| Error::other(format!("no response to {path}: {response}")))?;
    Ok(body.to_owned())
}
