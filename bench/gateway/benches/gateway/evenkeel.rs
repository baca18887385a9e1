//! Evenkeel as `evenkeel serve`, with flow control, and tenants known by a header.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use evenkeel_process::{Process, free_address};

use crate::contestant::{TENANT_HEADER, Task};
use crate::role::Role;

const OBJECTS: &str = include_str!("tenants.yaml");

/// More than there are connections, where nothing is to be kept away.
const SEATS: usize = 600;

pub(crate) fn start(task: Task, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    let seats = match task {
        Task::PassOn => SEATS,
        Task::Protect { slots } => slots,
    };
    let objects = folder.join("objects");
    fs::create_dir(&objects)?;
    fs::write(objects.join("tenants.yaml"), OBJECTS)?;
    let settings = folder.join("evenkeel.yaml");
    let identity = format!("{{fromAddresses: [127.0.0.0/8], userHeader: {TENANT_HEADER}}}");
    let log = "log: {filter: warn, rejectionsPerSecond: 0}";
    fs::write(&settings, format!("identity: {{sources: [trustedHeaders: {identity}]}}\n{log}\n"))?;
    let address = free_address()?;
    let mut command = Role::Gateway.command()?;
    command.args(["serve", "--admin-listen", "none", "--listen"]).arg(address.to_string());
    command.arg("--upstream").arg(format!("http://{upstream}")).arg("--concurrency").arg(seats.to_string());
    command.arg("--config").arg(settings).arg("--objects").arg(objects);
    Process::start(&mut command, address, folder)
}
