//! Caddy as a proxy, as its documentation would have it: connections to the upstream that are used again, no access log.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use evenkeel_process::{Process, free_address};

use crate::certificate::Certificate;
use crate::contestant::{Contestant, Task};

pub(crate) fn start(task: Task, tls: Option<&Certificate>, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    let address = free_address()?;
    let limit = match task {
        Task::PassOn | Task::PassOnWithOneWorker => String::new(),
        Task::Protect { slots } => format!("max_conns_per_host {slots}"),
    };
    let (scheme, files) = match tls {
        None => ("http", String::new()),
        Some(Certificate { chain, key, .. }) => ("https", format!("tls {} {}", chain.display(), key.display())),
    };
    let (host, port) = (address.ip(), address.port());
    // Without a name, so that every host is served. The first block is for all sites.
    let settings = format!(
        "{{
    admin off
    auto_https off
    persist_config off
    log {{
        level ERROR
    }}
}}
{scheme}://:{port} {{
    bind {host}
    {files}
    reverse_proxy http://{upstream} {{
        header_up X-Request-Id {{http.request.uuid}}
        transport http {{
            keepalive_idle_conns_per_host 128
            {limit}
        }}
    }}
}}\n"
    );
    let file = folder.join("Caddyfile");
    fs::write(&file, settings)?;
    let mut command = Contestant::Caddy.command();
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(file);
    // Where Caddy keeps what it remembers from one start to the next.
    command.env("XDG_DATA_HOME", folder).env("XDG_CONFIG_HOME", folder).env("HOME", folder);
    Process::start(&mut command, address, folder)
}
