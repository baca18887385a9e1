//! The settings of a gateway: what `evenkeel.yaml` holds, and what flags of the command line change.
//!
//! Every field has a default, so that a file says only what is different. A name that is not known is a mistake.

mod check;
mod debug_header;
mod difference;
mod file;
mod flow_control;
mod health;
mod limits;
mod listen;
mod listen_address;
mod log;
mod memory;
mod own_address;
mod paths;
mod read;
mod responses;
mod short;
mod socket_mode;
mod tracing;
mod upstream;
mod upstream_address;
mod wording;

use std::path::PathBuf;

use evenkeel_api::Preset;
use evenkeel_api::short::{ShortLevels, ShortRule};
use evenkeel_identity::config::duration;
use serde::{Deserialize, Serialize};

pub(crate) use limits::share;
pub(crate) use memory::connections as connections_that_fit;
use upstream_address::{UNIX, unix_path};

pub use debug_header::DebugHeaderConfig;
pub use file::ConfigFile;
pub use flow_control::{BorrowingConfig, FlowControlConfig};
pub use health::{HealthCheckConfig, HealthConfig, StatusRange};
pub use limits::{Limits, Timeouts};
pub use listen::{AdminConfig, ListenConfig, ServerTls};
pub use listen_address::ListenAddress;
pub use log::{AccessLogFormat, LogConfig, LogFormat};
pub use memory::{memory_limit, memory_of_connections};
pub use read::{ConfigError, is_settings};
pub use responses::{CorsConfig, Preflights, ResponseFormat, ResponseTemplate, ResponsesConfig};
pub use socket_mode::SocketMode;
pub use tracing::{OtlpProtocol, TracingConfig};
pub use upstream::{Protocol, UpstreamConfig, UpstreamTls};
pub use upstream_address::UpstreamAddress;

pub use evenkeel_identity::config::{
    AddressIdentity, AnonymousRequests, ApiKeyIdentity, CertificateIdentity, Cidr, HeaderIdentity, IdentityConfig,
    IdentitySource, JwtIdentity, KeysFrom, PathParametersConfig, Paths, Problem, RequestIdFrom, RequestsConfig,
    RouteConfig, RouteTimeouts, SystemNames, TokenIdentity, WhenClientLeaves, hide_credentials,
};

/// All settings of a gateway.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// What kind of service is behind the gateway: an ordinary one (`plain`, the default) or a Kubernetes API.
    pub preset: Preset,
    /// Where clients connect to.
    pub listen: Vec<ListenConfig>,
    /// The admin endpoint: metrics, health checks, dumps.
    #[serde(deserialize_with = "listen::admin_or_none")]
    pub admin: AdminConfig,
    /// The services that requests are passed on to. All of them serve the same requests.
    pub upstreams: Vec<UpstreamConfig>,
    /// When an upstream is taken out of the rotation, and for how long.
    pub health: HealthConfig,
    /// How many seats the upstreams have together: how many ordinary requests they can work on at a time.
    pub concurrency: u32,
    /// How the flow control works where there is a choice.
    pub flow_control: FlowControlConfig,
    /// A manifest or a folder of manifests with the objects to follow. Without one, those of the preset.
    pub objects: Option<PathBuf>,
    /// The levels, in short: each has a share of the seats. With `match` they stand for objects, so there is no `objects` beside them.
    #[serde(skip_serializing_if = "ShortLevels::is_empty")]
    pub levels: ShortLevels,
    /// Which requests go to which level, in short: the first match counts.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<ShortRule>,
    /// Who is calling.
    pub identity: IdentityConfig,
    /// What is asked, and what it costs.
    pub requests: RequestsConfig,
    /// The gateway's own error responses.
    pub responses: ResponsesConfig,
    /// What web pages of other origins may do.
    pub cors: CorsConfig,
    /// How long things may take.
    pub timeouts: Timeouts,
    /// How much of a thing there may be.
    pub limits: Limits,
    /// The settings of the log.
    pub log: LogConfig,
    /// Spans of requests, for a collector of OpenTelemetry.
    pub tracing: TracingConfig,
    /// Who may ask what was decided about a request.
    pub debug_header: DebugHeaderConfig,
    /// How many threads serve requests. The default is one for each core.
    pub workers: Option<usize>,
    /// The file of a Unix socket over which `evenkeel serve --takeover` takes the place of a gateway that runs. The gateway makes
    /// it, for its own user only.
    pub takeover_socket: Option<PathBuf>,
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            preset: Preset::default(),
            listen: vec![ListenConfig::default()],
            admin: AdminConfig::default(),
            upstreams: Vec::new(),
            health: HealthConfig::default(),
            concurrency: 600,
            flow_control: FlowControlConfig::default(),
            objects: None,
            levels: ShortLevels::default(),
            matches: Vec::new(),
            identity: IdentityConfig::default(),
            requests: RequestsConfig::default(),
            responses: ResponsesConfig::default(),
            cors: CorsConfig::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            log: LogConfig::default(),
            tracing: TracingConfig::default(),
            debug_header: DebugHeaderConfig::default(),
            workers: None,
            takeover_socket: None,
        }
    }
}
