//! The past of a level: what the stream sends before the first frame.

use serde::{Deserialize, Serialize};

use super::is_default;

/// One level through the last minutes, one value for each interval, the oldest first. All series are of the same length and
/// end at [`until_ms`](Self::until_ms).
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PastLevel {
    /// [`VERSION`](super::VERSION).
    pub version: u32,
    /// The name of the level.
    pub name: String,
    /// The end of the last interval, in milliseconds since 1970.
    pub until_ms: u64,
    /// The length of an interval.
    pub interval_ms: u64,
    /// The mean of the seats in use.
    #[serde(skip_serializing_if = "is_default")]
    pub in_use: Vec<f32>,
    /// The seats that it could use.
    #[serde(skip_serializing_if = "is_default")]
    pub current: Vec<u32>,
    /// The requests that waited.
    #[serde(skip_serializing_if = "is_default")]
    pub waiting: Vec<u32>,
    /// The 99th percentile of waits.
    #[serde(skip_serializing_if = "is_default")]
    pub wait_p99_ms: Vec<f32>,
}
