//! Evenkeel as `evenkeel serve`, with flow control, and tenants known by a header.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use evenkeel_process::{Process, free_address};
use tempfile::TempDir;

use crate::certificate::Certificate;
use crate::contestant::{TENANT_HEADER, Task};
use crate::role::Role;

const OBJECTS: &str = include_str!("tenants.yaml");

/// What a gateway that an Envoy asks has beside that: a queue for each tenant.
const LEVELS_FOR_ENVOY: &str =
    "levels: {tenants: {share: 100, queue: 1000, perClient: 40}}\nmatch: [{level: tenants}]\n";

/// More than there are connections, where nothing is to be kept away.
const SEATS: usize = 600;

/// Whether a gateway has an access log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AccessLog {
    #[default]
    Off,
    Json,
}

/// Which part of all requests a gateway traces, and where the spans go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tracing {
    pub(crate) ratio: f64,
    pub(crate) collector: SocketAddr,
}

/// A gateway whose settings change while it serves.
#[derive(Debug)]
pub(crate) struct Switchable {
    pub(crate) process: Process,
    admin: SocketAddr,
    more: More,
    folder: TempDir,
}

/// What sees the requests beside those who serve them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Nothing,
    Recorder,
    Shadow,
}

/// What only some gateways have.
#[derive(Debug, Default)]
struct More {
    routes: usize,
    access_log: AccessLog,
    tracing: Option<Tracing>,
    beside: Option<Beside>,
    admin: Option<SocketAddr>,
    /// How many rejections a second are logged.
    logged_rejections: u8,
    /// Instead of one for each core.
    workers: Option<usize>,
}

/// In the folder of a gateway.
const SETTINGS: &str = "evenkeel.yaml";
const LOGS: &str = "log";
/// How often the settings have changed.
const CHANGES: &str = "evenkeel_settings_changes_total{outcome=\"applied\"}";
/// How many requests have got their seats.
const DISPATCHED: &str = "apiserver_flowcontrol_dispatched_requests_total{";
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn start(task: Task, tls: Option<&Certificate>, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    let seats = seats_for(task);
    let workers = matches!(task, Task::PassOnWithOneWorker).then_some(1);
    run(Role::Gateway.command()?, seats, &More { workers, ..More::default() }, tls, upstream, folder)
}

fn seats_for(task: Task) -> usize {
    match task {
        Task::PassOn | Task::PassOnWithOneWorker => SEATS,
        Task::Protect { slots } => slots,
    }
}

/// Starts a gateway that an Envoy asks at this address. It forwards nothing itself.
pub(crate) fn start_for_envoy(
    task: Task,
    address: SocketAddr,
    admin: Option<SocketAddr>,
    folder: &Path,
) -> io::Result<Process> {
    let seats = seats_for(task);
    let file = folder.join(SETTINGS);
    fs::write(&file, format!("{}{LEVELS_FOR_ENVOY}", identity_and_log(&More::default(), folder)))?;
    let mut command = Role::Gateway.command()?;
    let admin = admin.map_or_else(|| "none".to_owned(), |address| address.to_string());
    command.args(["serve", "--admin-listen", &admin, "--ext-proc", &address.to_string()]);
    command.arg("--concurrency").arg(seats.to_string()).arg("--config").arg(file);
    Process::start(&mut command, address, folder)
}

/// Starts a gateway with an admin endpoint.
pub(crate) fn start_watched(admin: SocketAddr, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    run(Role::Gateway.command()?, SEATS, &More { admin: Some(admin), ..More::default() }, None, upstream, folder)
}

/// Starts a gateway with an access log in the folder, or without one.
pub(crate) fn start_logged(access_log: AccessLog, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    run(Role::Gateway.command()?, SEATS, &More { access_log, ..More::default() }, None, upstream, folder)
}

/// Starts a gateway with tracing, or without it.
pub(crate) fn start_traced(tracing: Option<Tracing>, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    run(Role::Gateway.command()?, SEATS, &More { tracing, ..More::default() }, None, upstream, folder)
}

/// Starts a gateway with so many routes: this one, or the binary at a path.
pub(crate) fn start_routed(
    binary: Option<&Path>,
    routes: usize,
    upstream: SocketAddr,
    folder: &Path,
) -> io::Result<Process> {
    let command = match binary {
        Some(path) => Command::new(path),
        None => Role::Gateway.command()?,
    };
    run(command, SEATS, &More { routes, ..More::default() }, None, upstream, folder)
}

fn run(
    mut command: Command,
    seats: usize,
    more: &More,
    tls: Option<&Certificate>,
    upstream: SocketAddr,
    folder: &Path,
) -> io::Result<Process> {
    let objects = folder.join("objects");
    fs::create_dir(&objects)?;
    fs::write(objects.join("tenants.yaml"), OBJECTS)?;
    if more.access_log == AccessLog::Json {
        fs::create_dir(folder.join(LOGS))?;
    }
    let address = free_address()?;
    let file = folder.join(SETTINGS);
    fs::write(&file, settings(more, tls, address, folder))?;
    let admin = more.admin.map_or_else(|| "none".to_owned(), |address| address.to_string());
    command.args(["serve", "--admin-listen", &admin]);
    command.arg("--upstream").arg(format!("http://{upstream}")).arg("--concurrency").arg(seats.to_string());
    command.arg("--config").arg(file).arg("--objects").arg(objects);
    Process::start(&mut command, address, folder)
}

fn identity_and_log(more: &More, folder: &Path) -> String {
    let identity = format!("{{fromAddresses: [127.0.0.0/8], userHeader: {TENANT_HEADER}}}");
    let access = match more.access_log {
        AccessLog::Off => String::new(),
        // In a folder of its own, as an installation has it: the folder of the settings is watched.
        AccessLog::Json => {
            format!(", access: json, accessFile: '{}'", folder.join(LOGS).join("access.log").display())
        }
    };
    let log = format!("log: {{filter: warn, rejectionsPerSecond: {}{access}}}", more.logged_rejections);
    format!("identity: {{sources: [trustedHeaders: {identity}]}}\n{log}\n")
}

fn settings(more: &More, tls: Option<&Certificate>, address: SocketAddr, folder: &Path) -> String {
    let mut settings = identity_and_log(more, folder);
    if let Some(Tracing { ratio, collector }) = more.tracing {
        // Writing to a text does not fail.
        let _ = writeln!(settings, "tracing: {{endpoint: 'http://{collector}', protocol: http, sampleRatio: {ratio}}}");
    }
    if let Some(beside) = more.beside {
        let bytes = if beside == Beside::Recorder { 32 << 20 } else { 0 };
        // Writing to a text does not fail.
        let _ = writeln!(settings, "flightRecorder: {{bytes: {bytes}}}");
        if beside == Beside::Shadow {
            settings.push_str("shadow: {concurrency: 64}\n");
        }
    }
    if let Some(workers) = more.workers {
        // Writing to a text does not fail.
        let _ = writeln!(settings, "workers: {workers}");
    }
    if more.routes > 0 {
        settings.push_str("requests:\n  routes:\n");
        for number in 0..more.routes {
            let path = format!("/shops/{{namespace}}/orders-{number}/{{name}}");
            // Writing to a text does not fail.
            let _ = writeln!(settings, "  - {{path: '{path}', resource: orders-{number}, seats: 2}}");
        }
    }
    let tls = tls.map_or_else(String::new, |Certificate { chain, key, .. }| {
        format!(", tls: {{certificate: '{}', key: '{}'}}", chain.display(), key.display())
    });
    // Writing to a text does not fail.
    let _ = writeln!(settings, "listen: [{{address: '{address}'{tls}}}]");
    settings
}

// === impl Switchable ===

impl Switchable {
    /// Starts it without tracing.
    pub(crate) fn start(upstream: SocketAddr) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("evenkeel-bench-").tempdir()?;
        let admin = free_address()?;
        let more = More { admin: Some(admin), ..More::default() };
        let process = run(Role::Gateway.command()?, SEATS, &more, None, upstream, folder.path())?;
        Ok(Self { process, admin, more, folder })
    }

    /// Changes the settings, also where tracing stays as it is, and waits until they are in effect: what a change costs is no
    /// part of any comparison.
    pub(crate) fn trace(&mut self, tracing: Option<Tracing>) -> io::Result<()> {
        self.more.tracing = tracing;
        self.apply()
    }

    /// The same for what sees the requests beside those who serve them.
    pub(crate) fn have_beside(&mut self, beside: Beside) -> io::Result<()> {
        self.more.beside = Some(beside);
        self.apply()
    }

    fn apply(&mut self) -> io::Result<()> {
        let before = self.metric(CHANGES)?;
        // Nothing is rejected, so that this changes nothing but the settings.
        self.more.logged_rejections ^= 1;
        let (file, folder) = (self.folder.path().join(SETTINGS), self.folder.path());
        let draft = folder.join("draft");
        fs::write(&draft, settings(&self.more, None, self.process.address, folder))?;
        fs::rename(draft, file)?;
        let start = Instant::now();
        while self.metric(CHANGES)? <= before {
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("the settings did not change:\n{}", self.process.output()?)));
            }
        }
        Ok(())
    }

    /// How many requests it has passed on so far.
    pub(crate) fn requests(&self) -> io::Result<f64> {
        self.metric(DISPATCHED)
    }

    /// The sum of the metrics that begin like this.
    fn metric(&self, name: &str) -> io::Result<f64> {
        let mut stream = TcpStream::connect(self.admin)?;
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.admin)?;
        let mut response = String::new();
        stream.read_to_string(&mut response)?;
        let values = response.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
        Ok(values.filter_map(|value| value.parse::<f64>().ok()).sum())
    }
}
