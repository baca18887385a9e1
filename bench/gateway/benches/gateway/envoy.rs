//! Envoy as a proxy: a worker for each core, connections to the upstream that are used again, no access log.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use evenkeel_process::{Process, free_address};
use serde_json::{Value, json};

use crate::certificate::Certificate;
use crate::contestant::{Contestant, Task};

/// Envoy's types are named in full.
const TYPES: &str = "type.googleapis.com/envoy.extensions";
/// More than there ever are: Envoy's defaults are 1024 connections and requests.
const UNLIMITED: usize = 1_000_000;

pub(crate) fn start(task: Task, tls: Option<&Certificate>, upstream: SocketAddr, folder: &Path) -> io::Result<Process> {
    let address = free_address()?;
    let (connections, pending) = match task {
        Task::PassOn | Task::PassOnWithOneWorker => (UNLIMITED, UNLIMITED),
        // The default of Envoy for those that wait.
        Task::Protect { slots } => (slots, 1024),
    };
    let mut chain = json!({ "filters": [{
        "name": "http",
        "typed_config": {
            "@type": format!("{TYPES}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
            "stat_prefix": "clients",
            "use_remote_address": true,
            "route_config": { "virtual_hosts": [{
                "name": "all", "domains": ["*"],
                "routes": [{ "match": { "prefix": "/" }, "route": { "cluster": "service", "timeout": "60s" } }],
            }] },
            "http_filters": [{
                "name": "router",
                "typed_config": { "@type": format!("{TYPES}.filters.http.router.v3.Router") },
            }],
        },
    }] });
    if let Some(files) = tls {
        chain["transport_socket"] = transport_socket(files);
    }
    let settings = json!({
        "static_resources": {
            "listeners": [{ "name": "clients", "address": socket_address(address), "filter_chains": [chain] }],
            "clusters": [{
                "name": "service",
                "type": "STATIC",
                "connect_timeout": "5s",
                "circuit_breakers": { "thresholds": [{
                    "max_connections": connections,
                    "max_pending_requests": pending,
                    "max_requests": UNLIMITED,
                }] },
                "load_assignment": {
                    "cluster_name": "service",
                    "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": socket_address(upstream) } }] }],
                },
            }],
        },
    });
    let file = folder.join("envoy.json");
    fs::write(&file, settings.to_string())?;
    let mut command = Contestant::Envoy.command();
    command.arg("--config-path").arg(file).args([
        "--concurrency",
        "2",
        "--disable-hot-restart",
        "--log-level",
        "error",
    ]);
    Process::start(&mut command, address, folder)
}

fn socket_address(address: SocketAddr) -> Value {
    json!({ "socket_address": { "address": address.ip().to_string(), "port_value": address.port() } })
}

fn transport_socket(files: &Certificate) -> Value {
    json!({
        "name": "tls",
        "typed_config": {
            "@type": format!("{TYPES}.transport_sockets.tls.v3.DownstreamTlsContext"),
            "common_tls_context": {
                "alpn_protocols": ["h2", "http/1.1"],
                "tls_certificates": [{
                    "certificate_chain": { "filename": files.chain },
                    "private_key": { "filename": files.key },
                }],
            },
        },
    })
}
