//! An upstream in a frame.

use serde::{Deserialize, Serialize};

use super::is_default;

/// A service behind the gateway.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Upstream {
    /// The host and port of the upstream.
    pub name: String,
    /// Whether it is down: out of the rotation, unless it is the only one.
    #[serde(skip_serializing_if = "is_default")]
    pub is_out: bool,
    /// Why it is down, if it is.
    #[serde(skip_serializing_if = "is_default")]
    pub out_cause: Option<OutCause>,
    /// The requests that it works on.
    #[serde(skip_serializing_if = "is_default")]
    pub in_flight: u64,
    /// The responses that began in the interval, per second.
    #[serde(skip_serializing_if = "is_default")]
    pub responses: f64,
    /// Responses that say that the upstream failed, per second: status 5xx except 501 and 505, and `UNKNOWN`, `INTERNAL`,
    /// `UNAVAILABLE` and `DATA_LOSS` of gRPC where there is no message.
    #[serde(skip_serializing_if = "is_default")]
    pub errors: f64,
    /// Requests that failed per second because a connection or a response took too long.
    #[serde(skip_serializing_if = "is_default")]
    pub timeouts: f64,
    /// Requests that failed per second because there was no connection: refused, or a name without an address.
    #[serde(skip_serializing_if = "is_default")]
    pub unreachable: f64,
    /// Requests that failed per second because it closed or reset the connection, or did not send HTTP.
    #[serde(skip_serializing_if = "is_default")]
    pub cut: f64,
    /// The mean time from a request to the beginning of its response, lately; `None` if there was no response.
    #[serde(skip_serializing_if = "is_default")]
    pub latency_ms: Option<f64>,
    /// The latency as it usually was in the minutes before; `None` if that is not known.
    #[serde(skip_serializing_if = "is_default")]
    pub latency_before_ms: Option<f64>,
    /// Since when the latency has been different from before, in milliseconds since 1970, if it is.
    #[serde(skip_serializing_if = "is_default")]
    pub changed_ms: Option<u64>,
}

/// Why an upstream is down.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OutCause {
    /// The upstream refuses connections, or closes them before it responds.
    Connections,
    /// The upstream responds with errors or too late, more often than the others.
    Errors,
    /// Nothing comes back from it while the other upstreams respond.
    Silent,
    /// The health check of the upstream fails.
    Check,
}

// === impl OutCause ===

impl OutCause {
    /// What the upstream does, for people: `the upstream … {words}`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Connections => "refuses or closes connections",
            Self::Errors => "responds with errors",
            Self::Silent => "does not respond",
            Self::Check => "fails its health check",
        }
    }
}
