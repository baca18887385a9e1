//! The settings of how requests are interpreted, and what they cost.

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_api::annotations::CostUnit;
use evenkeel_engine::digest::PathParameters;
use serde::{Deserialize, Serialize};

use super::{cost_unit, duration};

/// How paths are understood. Where no route fits, a request is known by its method and its path: it is what Kubernetes calls
/// a non-resource request. Under the preset `kubernetes`, it is what a kube-apiserver takes it for.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RequestsConfig {
    /// Templates of paths; the most specific one that fits a request says what it asks for and what it costs.
    pub routes: Vec<RouteConfig>,
    /// How a request is treated at the upstream when its client leaves, where the request's route does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_client_leaves: Option<WhenClientLeaves>,
    /// How paths are treated that are not in their normal form.
    pub paths: Paths,
    /// How paths with parameters (`/a;x=1/b`) are treated. The default is `reject`, and `keep` under the preset `kubernetes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_parameters: Option<PathParametersConfig>,
    /// Whose `X-Request-Id` becomes the id of a request. Other requests get an id of the gateway's own.
    pub request_id_from: RequestIdFrom,
}

/// How a request is treated at the upstream when its client leaves. Either way the request's seat stands for the upstream's work,
/// so a client gains nothing by leaving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum WhenClientLeaves {
    /// The request keeps its seat until the upstream has responded or closed the connection, at most for
    /// `timeouts.response`. An HTTP/1.1 upstream is told by closing the sending half of the connection. This is the default.
    Wait,
    /// The request is cancelled: its connection is closed, or its stream is reset. The seat stays taken for as long as such
    /// requests usually take. For upstreams that stop working on cancelled requests; the default for gRPC.
    Cancel,
}

/// How a path is treated that is not in its normal form, as `/x/../expensive`, `//expensive` or `/%65xpensive`. Decisions always
/// see the normal form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Paths {
    /// The upstream gets the normal form, too.
    #[default]
    Normalise,
    /// The request is rejected with 400; so is one with an encoded slash (`%2F`).
    Reject,
    /// The upstream gets the path as it was sent. A request with dot segments is rejected with 400.
    AsIs,
}

/// How paths with parameters are treated, as `/a;x=1/b`. Servlet containers take that for `/a/b`, and most other servers take the
/// parameter for a part of the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum PathParametersConfig {
    /// The request is rejected with 400.
    Reject,
    /// Decisions see the path without its parameters, and so does the upstream, unless it gets paths as they were sent.
    Strip,
    /// `;` is a character like others. For services that take it for that.
    Keep,
}

/// Whose `X-Request-Id` becomes the id of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum RequestIdFrom {
    /// The id of every client, if it is valid: at most 128 letters, digits and characters of `-_.:+/=@`.
    #[default]
    Anyone,
    /// The id of proxies that speak for others (`trustedHeaders`, `address.trustedProxies`).
    TrustedProxies,
    /// No client's: all requests get an id of the gateway's own.
    Nobody,
}

/// One template of paths.
///
/// Not `#[non_exhaustive]`: programs that set up routes make it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RouteConfig {
    /// The template: `/v2/tenants/{namespace}/{resource}/{name}`.
    pub path: String,
    /// The resource that it is about, if the template has no `{resource}`. With neither, requests stay what they are,
    /// known by their method and path, and the route only says what they cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The verb, if it is not to follow from the method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// The methods that it is for. None means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// The seats that a request takes while it runs. Zero is for requests that only wait at the upstream, such as long polls:
    /// they start at once, and the annotation `evenkeel.dev/max-long-running` of their level limits how many there are.
    #[serde(default = "one_seat")]
    pub seats: u32,
    /// The unit of its requests' cost, where their match or flow schema does not say: `time`, `bytes`, `tokens`, `header:NAME` or
    /// `header:NAME;keep`.
    #[serde(default, with = "cost_unit", skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostUnit>,
    /// The request runs for long: it gives its seats back when the head of its response is there.
    #[serde(default)]
    pub long_running: bool,
    /// How such a request is treated at the upstream when its client leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when_client_leaves: Option<WhenClientLeaves>,
    /// How long such a request may take, where that differs from `timeouts`.
    #[serde(default, skip_serializing_if = "RouteTimeouts::is_empty")]
    pub timeouts: RouteTimeouts,
}

/// How long the requests of a route may take. A timeout that is not set is that of all requests.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RouteTimeouts {
    /// From the time the request may run, or its body moved last, until the head of its response. Zero means no limit.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub response: Option<Duration>,
    /// Without anything that moves, neither the request's body nor the response's.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub stall: Option<Duration>,
    /// From the arrival of the request until its response has ended, also if it is a stream. Zero means no limit.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub total: Option<Duration>,
    /// Waiting for a seat, if the request does not say how long it makes sense.
    #[serde(with = "duration::optional", skip_serializing_if = "Option::is_none")]
    pub queue: Option<Duration>,
}

fn one_seat() -> u32 {
    1
}

// === impl RequestsConfig ===

impl RequestsConfig {
    /// What becomes of path parameters. A Kubernetes API has no paths with any, and takes `;` for a character like others.
    pub(crate) fn path_parameters(&self, preset: Preset) -> PathParameters {
        match (self.path_parameters, preset) {
            (Some(PathParametersConfig::Reject), _) | (None, Preset::Plain | Preset::Llm) => PathParameters::Reject,
            (Some(PathParametersConfig::Strip), _) => PathParameters::Strip,
            (Some(PathParametersConfig::Keep), _) | (None, Preset::Kubernetes) => PathParameters::Keep,
        }
    }
}

// === impl RouteConfig ===

impl RouteConfig {
    /// A route for all requests that this template of a path matches, each of which takes one seat.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            resource: None,
            verb: None,
            methods: Vec::new(),
            seats: one_seat(),
            cost: None,
            long_running: false,
            when_client_leaves: None,
            timeouts: RouteTimeouts::default(),
        }
    }
}

// === impl RouteTimeouts ===

impl RouteTimeouts {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
