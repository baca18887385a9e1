//! The tests of the gateway, in one program: each further program would have to be linked.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod access_log;
mod admin;
mod any_request;
mod authority;
mod auto_limit;
mod balancing;
mod bodies;
mod client_limits;
mod config;
mod costs;
mod curl;
mod dashboard;
mod diagnosis;
mod drain;
mod error_formats;
mod expect;
mod explain;
mod ext_proc;
mod failing_upstreams;
mod flight;
#[path = "../followed/mod.rs"]
mod followed;
mod forwarded_headers;
mod frames;
mod grpc;
mod host;
mod http2;
mod http2_frames;
mod http2_upstreams;
mod http2_windows;
mod identity;
mod jwt_keys;
mod live_settings;
mod llm;
mod llm_hostile;
mod llm_leaving;
mod llm_revocation;
mod llm_usage;
mod long_polls;
mod long_requests;
mod metrics;
mod newcomers;
mod objects_faults;
mod paths;
mod proxy_protocol;
mod requests;
mod retries;
mod route_timeouts;
mod seats;
mod services;
mod shadow;
mod short_form;
mod slow_clients;
mod smuggling;
#[path = "../support/mod.rs"]
mod support;
mod tls;
mod too_few_seats;
#[cfg(feature = "otlp")]
mod tracing;
mod two_way;
mod unix_sockets;
mod upgrades;
mod upstream_lookups;
mod upstream_names;
mod upstream_tls;
mod websocket_http2;
