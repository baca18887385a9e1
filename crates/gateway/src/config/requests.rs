//! What requests ask for, and what they cost.

use serde::{Deserialize, Serialize};

/// How paths are understood. Without routes they are those of the Kubernetes API, and all others are what they are.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct RequestsConfig {
    /// Templates of paths; the first that fits a request says what it asks for and what it costs.
    pub routes: Vec<RouteConfig>,
    /// Whether paths below `/api` and `/apis` are those of Kubernetes, where no route fits. Switched on, a client can ask
    /// for a watch, and estimates follow Kubernetes'.
    pub kubernetes: bool,
}

/// One template of paths.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct RouteConfig {
    /// The template: `/v2/tenants/{namespace}/{resource}/{name}`.
    pub path: String,
    /// The methods that it is for. None means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub methods: Vec<String>,
    /// The seats that a request takes while it runs.
    #[serde(default = "one_seat")]
    pub seats: u32,
    /// The request runs for long: it gives its seats back when the head of its answer is there.
    #[serde(default)]
    pub long_running: bool,
}

fn one_seat() -> u32 {
    1
}
