//! Those who are compared, and what each of them is asked to do.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use evenkeel_bars::{Bar, Bars};
use evenkeel_process::Process;
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::envoy::Filter;
use crate::{caddy, envoy, evenkeel, haproxy, nginx};

/// The header that says which tenant a request comes from.
pub(crate) const TENANT_HEADER: &str = "X-Tenant";

/// A proxy that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contestant {
    Evenkeel,
    Nginx,
    Haproxy,
    Envoy,
    Caddy,
}

/// What a proxy is asked to do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// To pass requests on; the upstream takes more than there are.
    PassOn,
    /// The same with one worker. Only some proxies have a setting for that.
    PassOnWithOneWorker,
    /// To keep more requests than this away from the upstream at a time.
    Protect { slots: usize },
}

/// How clients reach a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientTransport {
    /// Without TLS.
    Plain,
    /// With TLS, and HTTP/2 for those who ask for it.
    Tls,
}

/// A proxy that runs. Its folder goes with it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) contestant: Contestant,
    pub(crate) process: Process,
    /// If clients reach it over TLS.
    pub(crate) certificate: Option<Certificate>,
    _folder: TempDir,
}

// === impl Contestant ===

impl Contestant {
    /// In the order in which they are shown.
    const ALL: [Self; 5] = [Self::Evenkeel, Self::Nginx, Self::Haproxy, Self::Envoy, Self::Caddy];
    /// The place of nginx among them: bars are ratios to its figures.
    pub(crate) const NGINX: usize = 1;

    /// Those that are installed. The first three are needed, and have been looked for.
    pub(crate) fn installed() -> Vec<Self> {
        Self::ALL.into_iter().filter(|contestant| contestant.is_installed()).collect()
    }

    pub(crate) fn is_installed(self) -> bool {
        match self {
            Self::Evenkeel | Self::Nginx | Self::Haproxy => true,
            Self::Envoy | Self::Caddy => self.command().arg("--version").output().is_ok_and(|run| run.status.success()),
        }
    }

    /// The program of one that a Python package brings: that of the set-up, or else the one in the path.
    pub(crate) fn command(self) -> Command {
        let installed = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python-client/bin").join(self.name());
        if installed.exists() { Command::new(installed) } else { Command::new(self.name()) }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Evenkeel => "evenkeel",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::Envoy => "envoy",
            Self::Caddy => "caddy",
        }
    }

    pub(crate) fn start(self, task: Task, entry: ClientTransport, upstream: SocketAddr) -> io::Result<Running> {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let certificate = match entry {
            ClientTransport::Plain => None,
            ClientTransport::Tls => Some(Certificate::write(folder.path())?),
        };
        let process = match self {
            Self::Evenkeel => evenkeel::start(task, certificate.as_ref(), upstream, folder.path()),
            Self::Nginx => nginx::start(task, certificate.as_ref(), upstream, folder.path()),
            Self::Haproxy => haproxy::start(task, certificate.as_ref(), upstream, folder.path()),
            Self::Envoy => envoy::start(task, &Filter::None, certificate.as_ref(), upstream, folder.path()),
            Self::Caddy => caddy::start(task, certificate.as_ref(), upstream, folder.path()),
        }?;
        Ok(Running { contestant: self, process, certificate, _folder: folder })
    }

    /// All that are installed.
    pub(crate) fn start_all(task: Task, entry: ClientTransport, upstream: SocketAddr) -> io::Result<Vec<Running>> {
        Self::installed().into_iter().map(|contestant| contestant.start(task, entry, upstream)).collect()
    }

    /// Adds the figures of all contestants, and the bar that is ours.
    pub(crate) fn add_all(bars: &mut Bars, measure: &str, unit: &str, running: &[Running], figures: &[f64], ours: Bar) {
        for (Running { contestant, .. }, figure) in running.iter().zip(figures) {
            let bar = if *contestant == Self::Evenkeel { ours } else { Bar::None };
            bars.add(format!("{measure}, {}", contestant.name()), *figure, unit, bar);
        }
    }
}
