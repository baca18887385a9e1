//! Evenkeel as `evenkeel serve`, with flow control, and tenants known by a header.

use std::fmt::Write;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use evenkeel_process::{Process, free_address};

use crate::certificate::Certificate;
use crate::contestant::{TENANT_HEADER, Task};
use crate::role::Role;

const OBJECTS: &str = include_str!("tenants.yaml");

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

/// What only some gateways have.
#[derive(Debug, Default)]
struct More {
    routes: usize,
    access_log: AccessLog,
    tracing: Option<Tracing>,
    admin: Option<SocketAddr>,
}

pub(crate) fn start(task: Task, tls: Option<&Certificate>, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    let seats = match task {
        Task::PassOn => SEATS,
        Task::Protect { slots } => slots,
    };
    run(Role::Gateway.command()?, seats, &More::default(), tls, upstream, folder)
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
    let identity = format!("{{fromAddresses: [127.0.0.0/8], userHeader: {TENANT_HEADER}}}");
    let access = match more.access_log {
        AccessLog::Off => String::new(),
        // In a folder of its own, as an installation has it: the folder of the settings is watched.
        AccessLog::Json => {
            let logs = folder.join("log");
            fs::create_dir(&logs)?;
            format!(", access: json, accessFile: '{}'", logs.join("access.log").display())
        }
    };
    let log = format!("log: {{filter: warn, rejectionsPerSecond: 0{access}}}");
    let mut settings = format!("identity: {{sources: [trustedHeaders: {identity}]}}\n{log}\n");
    if let Some(Tracing { ratio, collector }) = more.tracing {
        // Writing to a text does not fail.
        let _ = writeln!(settings, "tracing: {{endpoint: 'http://{collector}', protocol: http, sampleRatio: {ratio}}}");
    }
    if more.routes > 0 {
        settings.push_str("requests:\n  routes:\n");
        for number in 0..more.routes {
            let path = format!("/shops/{{namespace}}/orders-{number}/{{name}}");
            // Writing to a text does not fail.
            let _ = writeln!(settings, "  - {{path: '{path}', resource: orders-{number}, seats: 2}}");
        }
    }
    let address = free_address()?;
    let tls = tls.map_or_else(String::new, |Certificate { chain, key, .. }| {
        format!(", tls: {{certificate: '{}', key: '{}'}}", chain.display(), key.display())
    });
    // Writing to a text does not fail.
    let _ = writeln!(settings, "listen: [{{address: '{address}'{tls}}}]");
    let file = folder.join("evenkeel.yaml");
    fs::write(&file, settings)?;
    let admin = more.admin.map_or_else(|| "none".to_owned(), |address| address.to_string());
    command.args(["serve", "--admin-listen", &admin]);
    command.arg("--upstream").arg(format!("http://{upstream}")).arg("--concurrency").arg(seats.to_string());
    command.arg("--config").arg(file).arg("--objects").arg(objects);
    Process::start(&mut command, address, folder)
}
