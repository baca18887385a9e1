//! nginx as a proxy, as its documentation would have it: a worker for each core and connections that are used again.

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
    let (zone, limit) = match task {
        Task::PassOn | Task::PassOnWithOneWorker => (String::new(), String::new()),
        Task::Protect { slots } => {
            ("limit_conn_zone $server_port zone=all:1m;".to_owned(), format!("limit_conn all {slots};"))
        }
    };
    let (protocols, files) = match tls {
        None => ("", String::new()),
        Some(Certificate { chain, key, .. }) => {
            let files = format!("ssl_certificate {}; ssl_certificate_key {};", chain.display(), key.display());
            ("ssl http2", files)
        }
    };
    let http = format!(
        "{zone}
        upstream service {{ server {upstream}; keepalive 128; keepalive_requests 100000000; }}
        server {{
            listen {address} backlog=4096 {protocols};
            {files}
            keepalive_requests 100000000;
            location / {{
                {limit}
                proxy_pass http://service;
                proxy_http_version 1.1;
                proxy_set_header Connection '';
                proxy_set_header Host $http_host;
                proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
                proxy_set_header X-Forwarded-Proto $scheme;
                proxy_set_header X-Request-Id $request_id;
            }}
        }}"
    );
    let workers = if matches!(task, Task::PassOnWithOneWorker) { "1" } else { "auto" };
    run(workers, &http, address, folder)
}

/// Starts nginx with so many workers and this in its `http` section.
pub(crate) fn run(workers: &str, http: &str, address: SocketAddr, folder: &Path) -> io::Result<Process> {
    let settings = format!(
        "daemon off;
        worker_processes {workers};
        pid nginx.pid;
        error_log error.log crit;
        events {{ worker_connections 11000; }}
        http {{
            access_log off;
            client_body_temp_path body;
            proxy_temp_path proxy;
            fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi;
            scgi_temp_path scgi;
            {http}
        }}\n"
    );
    fs::write(folder.join("nginx.conf"), settings)?;
    let mut command = Command::new("nginx");
    command.arg("-p").arg(folder).args(["-e", "error.log", "-c", "nginx.conf"]);
    Process::start(&mut command, address, folder)
}
