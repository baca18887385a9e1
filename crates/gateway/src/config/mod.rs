//! The settings of a gateway: what `evenkeel.yaml` holds, and what flags of the command line change.
//!
//! Every field has a default, so that a file says only what is different. A name that is not known is a mistake.

mod check;
mod debug_header;
mod difference;
mod dns;
mod ext_proc;
mod file;
mod fleet;
mod flight_recorder;
mod flow_control;
mod health;
mod limit;
mod limits;
mod listen;
mod listen_address;
mod llm;
mod log;
mod memory;
mod own_address;
mod paths;
mod read;
mod responses;
mod service;
mod service_check;
mod shadow;
mod short;
mod socket_mode;
mod tracing;
mod upstream;
mod upstream_address;
mod wording;

use std::collections::BTreeMap;
use std::path::PathBuf;

use evenkeel::limit::Concurrency;
use evenkeel_api::Preset;
use evenkeel_api::short::{ShortLevels, ShortRule};
use evenkeel_identity::config::duration;
use serde::{Deserialize, Serialize};

pub(crate) use limits::share;
pub(crate) use memory::connections as connections_that_fit;
pub(crate) use service::DEFAULT_SERVICE;
use upstream_address::{UNIX, unix_path};

pub use debug_header::DebugHeaderConfig;
pub use dns::{AddressFamily, DnsConfig, NameServer};
pub use ext_proc::ExtProcConfig;
pub use file::ConfigFile;
pub use fleet::{FleetConfig, FleetTls};
pub use flight_recorder::{FlightRecorderConfig, FlightTriggersConfig};
pub use flow_control::{BorrowingConfig, FlowControlConfig};
pub use health::{HealthCheckConfig, HealthConfig, StatusRange};
pub use limit::{HoldWhile, LimitConfig};
pub use limits::{Limits, Timeouts};
pub use listen::{AdminConfig, ListenConfig, ServerTls};
pub use listen_address::ListenAddress;
pub use llm::LlmConfig;
pub use log::{AccessLogFormat, LogConfig, LogFormat};
pub use memory::{memory_limit, memory_of_connections};
pub use read::{ConfigError, is_settings};
pub use responses::{CorsConfig, Preflights, ResponseFormat, ResponseTemplate, ResponsesConfig};
pub use service::ServiceConfig;
pub use shadow::{ReturnIfConfig, ShadowConfig};
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
    /// What kind of service is behind the gateway: an ordinary one (`plain`, the default), one of language models (`llm`) or a
    /// Kubernetes API. Programs that set it to `llm` begin with [`Config::for_preset`].
    pub preset: Preset,
    /// Where clients connect to.
    pub listen: Vec<ListenConfig>,
    /// Where Envoy asks what to do with its requests (external processing), if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ext_proc: Option<ExtProcConfig>,
    /// The admin endpoint: metrics, health checks, dumps.
    #[serde(deserialize_with = "listen::admin_or_none")]
    pub admin: AdminConfig,
    /// Where requests are passed on to. All of them serve the same requests: all of them, or those that belong to none of the `services`.
    pub upstreams: Vec<UpstreamConfig>,
    /// Several services behind one gateway, by name: a request belongs to one by its host and path.
    pub services: BTreeMap<String, ServiceConfig>,
    /// How the names of upstreams are looked up.
    pub dns: DnsConfig,
    /// When an upstream is taken out of the rotation, and for how long.
    pub health: HealthConfig,
    /// How many seats the upstreams have together: how many ordinary requests they can work on at a time.
    /// A number, or `auto` to find that out. The default is that of the preset: see [`concurrency`](Self::concurrency).
    #[serde(with = "limit::concurrency::optional")]
    pub concurrency: Option<Concurrency>,
    /// The settings of a limit that finds itself.
    pub limit: LimitConfig,
    /// Other gateways in front of the same upstreams: they share the seats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetConfig>,
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
    /// A second configuration that decides about the same requests, and changes none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shadow: Option<ShadowConfig>,
    /// The flight recorder, which keeps the decisions about the last requests for `/debug/flight`.
    pub flight_recorder: FlightRecorderConfig,
    /// How callers are identified.
    pub identity: IdentityConfig,
    /// How requests are interpreted, and what they cost.
    pub requests: RequestsConfig,
    /// How the tokens of language models are counted.
    pub llm: LlmConfig,
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
    /// Which clients may ask what was decided about a request.
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
            ext_proc: None,
            admin: AdminConfig::default(),
            upstreams: Vec::new(),
            services: BTreeMap::new(),
            dns: DnsConfig::default(),
            health: HealthConfig::default(),
            concurrency: None,
            limit: LimitConfig::default(),
            fleet: None,
            flow_control: FlowControlConfig::default(),
            objects: None,
            levels: ShortLevels::default(),
            matches: Vec::new(),
            shadow: None,
            flight_recorder: FlightRecorderConfig::default(),
            identity: IdentityConfig::default(),
            requests: RequestsConfig::default(),
            llm: LlmConfig::default(),
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

impl Config {
    /// Whether the gateway serves requests that belong to no service.
    pub fn has_default_pool(&self) -> bool {
        !self.upstreams.is_empty() || self.services.is_empty() || self.ext_proc.is_some()
    }

    /// How many seats the upstreams have: as the setting says, or the preset.
    pub fn concurrency(&self) -> Concurrency {
        self.concurrency.clone().unwrap_or_else(|| Concurrency::of_preset(self.preset))
    }

    /// Whether the gateway forwards requests itself.
    pub(crate) fn has_upstreams(&self) -> bool {
        !self.upstreams.is_empty() || self.services.values().any(|service| !service.upstream.is_empty())
    }

    /// The limit settings of a service. From the gateway's own settings it takes only the folder of the state file: each service
    /// has a file there, with its name.
    pub fn limit_of(&self, service: &str) -> LimitConfig {
        let own = self.services.get(service).map(|service| service.limit.clone()).unwrap_or_default();
        let beside = || self.limit.state_file.as_deref().map(|file| limit::beside(file, service));
        LimitConfig { state_file: own.state_file.or_else(beside), ..own }
    }

    /// How many seats a service has.
    pub fn concurrency_of(&self, service: &str) -> Concurrency {
        let own = self.services.get(service).and_then(|service| service.concurrency.clone());
        own.unwrap_or_else(|| self.concurrency())
    }

    /// How many seats there are altogether, at most.
    pub fn concurrency_of_all(&self) -> u32 {
        let default = if self.has_default_pool() { self.concurrency().most() } else { 0 };
        self.services.keys().fold(default, |sum, service| sum.saturating_add(self.concurrency_of(service).most()))
    }
}
