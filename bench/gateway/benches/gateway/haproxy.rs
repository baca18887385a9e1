//! `HAProxy` as a proxy: two threads, and connections to the upstream that are used again.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use evenkeel_process::{Process, free_address};

use crate::certificate::Certificate;
use crate::contestant::Task;

pub(crate) fn start(task: Task, tls: Option<&Certificate>, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    let address = free_address()?;
    let limit = match task {
        Task::PassOn | Task::PassOnWithOneWorker => String::new(),
        Task::Protect { slots } => format!("maxconn {slots}"),
    };
    let tls = tls.map_or_else(String::new, |files| format!("ssl crt {} alpn h2,http/1.1", files.both.display()));
    let settings = format!(
        "global
    nbthread 2
    maxconn 11000
    no strict-limits
defaults
    mode http
    timeout connect 5s
    timeout client 75s
    timeout server 60s
    timeout queue 30s
    http-reuse always
    option forwardfor
frontend clients
    bind {address} backlog 4096 {tls}
    http-request set-header X-Forwarded-Proto http
    unique-id-format %[uuid()]
    unique-id-header X-Request-Id
    default_backend service
backend service
    server service {upstream} {limit}\n"
    );
    let file = folder.join("haproxy.cfg");
    fs::write(&file, settings)?;
    let mut command = Command::new("haproxy");
    command.arg("-db").arg("-f").arg(file);
    Process::start(&mut command, address, folder)
}
