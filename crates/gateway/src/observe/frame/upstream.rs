//! An upstream in a frame.

use serde::{Deserialize, Serialize};

use super::is_default;

/// A service behind the gateway.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Upstream {
    /// Its host and port.
    pub name: String,
    /// Whether it is down: out of the rotation, unless it is the only one.
    #[serde(skip_serializing_if = "is_default")]
    pub is_out: bool,
    /// The responses that began in the interval, per second.
    #[serde(skip_serializing_if = "is_default")]
    pub responses: f64,
    /// The mean time from a request to the beginning of its response, lately; `None` if there was no response.
    #[serde(skip_serializing_if = "is_default")]
    pub latency_ms: Option<f64>,
    /// The same as it usually was in the minutes before; `None` if that is not known.
    #[serde(skip_serializing_if = "is_default")]
    pub latency_before_ms: Option<f64>,
    /// Since when the latency has been different from before, in milliseconds since 1970, if it is.
    #[serde(skip_serializing_if = "is_default")]
    pub changed_ms: Option<u64>,
}
