//! `CanaryState`: the state of a canary, for people and for metrics.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The state of a canary. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CanaryState {
    /// Whether it runs, or has returned.
    pub phase: CanaryPhase,
    /// How many percent of the flows it has.
    pub percent: u8,
    /// How many seats it has.
    pub seats: i64,
    /// For how many seconds it has run.
    pub seconds: f64,
    /// How many requests it got.
    pub requests: u64,
    /// How many of them were rejected.
    pub rejected: u64,
    /// Half of those that started waited no longer.
    pub wait_p50: f64,
    /// One of a hundred of those that started waited longer.
    pub wait_p99: f64,
    /// Why it has returned by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<String>,
}

/// Whether a canary runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CanaryPhase {
    /// The canary has its part of the flows.
    Running,
    /// The canary was worse than its bounds, and has lost all of its flows.
    Returned,
}

/// The bounds of a canary, which ends by itself when it is worse.
///
/// Not `#[non_exhaustive]`: all of it has to be given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CanaryBounds {
    /// The part of its requests that may be rejected, from 0 to 1.
    pub rejected: f64,
    /// How long 99 of a hundred of its requests may wait at most.
    pub wait_p99: Duration,
}

// === impl CanaryBounds ===

impl Default for CanaryBounds {
    /// 5 percent, and two seconds.
    fn default() -> Self {
        Self { rejected: 0.05, wait_p99: Duration::from_secs(2) }
    }
}
