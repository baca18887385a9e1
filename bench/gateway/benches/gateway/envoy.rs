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
pub(crate) const UNLIMITED: usize = 1_000_000;

/// What Envoy does with requests before it forwards them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Filter {
    None,
    /// Asks a gateway at this address. While it is away, requests pass or fail.
    ExtProc {
        gateway: SocketAddr,
        failure_mode_allow: bool,
    },
    /// Its own limit by latency, with the settings of its documentation.
    AdaptiveConcurrency,
    /// Its own rate for all requests together: what the service of the benchmark can do.
    LocalRateLimit,
    /// Its own filter that rejects more the more responses fail, with the settings of its documentation.
    AdmissionControl,
}

pub(crate) fn start(
    task: Task,
    filter: &Filter,
    tls: Option<&Certificate>,
    upstream: SocketAddr,
    folder: &Path,
) -> io::Result<Process> {
    let address = free_address()?;
    let (connections, pending) = match task {
        Task::PassOn | Task::PassOnWithOneWorker => (UNLIMITED, UNLIMITED),
        // The default of Envoy for those that wait.
        Task::Protect { slots } => (slots, 1024),
    };
    let settings = settings(address, upstream, filter, tls, (connections, pending));
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

/// Its settings, with limits of the connections to the upstream and of the requests that wait for one.
pub(crate) fn settings(
    address: SocketAddr,
    upstream: SocketAddr,
    filter: &Filter,
    tls: Option<&Certificate>,
    (connections, pending): (usize, usize),
) -> Value {
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
            "http_filters": filters(filter),
        },
    }] });
    if let Some(files) = tls {
        chain["transport_socket"] = transport_socket(files);
    }
    let mut settings = json!({
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
    if let Filter::ExtProc { gateway, .. } = filter
        && let Some(clusters) = settings["static_resources"]["clusters"].as_array_mut()
    {
        clusters.push(gateway_cluster(*gateway));
    }
    settings
}

fn filters(filter: &Filter) -> Value {
    let router = json!({
        "name": "router",
        "typed_config": { "@type": format!("{TYPES}.filters.http.router.v3.Router") },
    });
    let first = match filter {
        Filter::None => return json!([router]),
        Filter::ExtProc { failure_mode_allow, .. } => json!({
            "name": "ext_proc",
            "typed_config": {
                "@type": format!("{TYPES}.filters.http.ext_proc.v3.ExternalProcessor"),
                "grpc_service": { "envoy_grpc": { "cluster_name": "gateway" } },
                "message_timeout": "60s",
                "failure_mode_allow": failure_mode_allow,
                "processing_mode": {
                    "request_header_mode": "SEND", "response_header_mode": "SKIP", "response_trailer_mode": "SEND",
                },
                "request_attributes": ["source.address"],
            },
        }),
        Filter::AdaptiveConcurrency => json!({
            "name": "adaptive_concurrency",
            "typed_config": {
                "@type": format!("{TYPES}.filters.http.adaptive_concurrency.v3.AdaptiveConcurrency"),
                "gradient_controller_config": {
                    "sample_aggregate_percentile": { "value": 90 },
                    "concurrency_limit_params": { "concurrency_update_interval": "0.1s" },
                    "min_rtt_calc_params": { "jitter": { "value": 10 }, "interval": "60s", "request_count": 50 },
                },
                "enabled": { "default_value": true, "runtime_key": "adaptive_concurrency.enabled" },
            },
        }),
        Filter::LocalRateLimit => {
            let always =
                json!({ "default_value": { "numerator": 100, "denominator": "HUNDRED" }, "runtime_key": "always" });
            json!({
                "name": "local_ratelimit",
                "typed_config": {
                    "@type": format!("{TYPES}.filters.http.local_ratelimit.v3.LocalRateLimit"),
                    "stat_prefix": "rate",
                    "token_bucket": { "max_tokens": 40, "tokens_per_fill": 40, "fill_interval": "0.1s" },
                    "filter_enabled": always,
                    "filter_enforced": always,
                },
            })
        }
        Filter::AdmissionControl => json!({
            "name": "admission_control",
            "typed_config": {
                "@type": format!("{TYPES}.filters.http.admission_control.v3.AdmissionControl"),
                "enabled": { "default_value": true, "runtime_key": "admission_control.enabled" },
                "sampling_window": "30s",
                "sr_threshold": { "default_value": { "value": 95 }, "runtime_key": "admission_control.threshold" },
                "aggression": { "default_value": 1.5, "runtime_key": "admission_control.aggression" },
                "success_criteria": { "http_criteria": { "http_success_status": [{ "start": 100, "end": 400 }] } },
            },
        }),
    };
    json!([first, router])
}

/// The gateway that is asked, over HTTP/2.
fn gateway_cluster(gateway: SocketAddr) -> Value {
    let options = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    json!({
        "name": "gateway",
        "type": "STATIC",
        "connect_timeout": "5s",
        "typed_extension_protocol_options": { options: {
            "@type": format!("type.googleapis.com/{options}"),
            "explicit_http_config": { "http2_protocol_options": {} },
        } },
        "circuit_breakers": { "thresholds": [{ "max_pending_requests": UNLIMITED, "max_requests": UNLIMITED }] },
        "load_assignment": {
            "cluster_name": "gateway",
            "endpoints": [{ "lb_endpoints": [{ "endpoint": { "address": socket_address(gateway) } }] }],
        },
    })
}

pub(crate) fn socket_address(address: SocketAddr) -> Value {
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
