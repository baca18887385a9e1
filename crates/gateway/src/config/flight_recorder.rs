//! The settings of the flight recorder, which keeps the decisions about the last requests.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::duration;

/// The flight recorder: decisions about the last requests are kept in memory, for `/debug/flight`.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FlightRecorderConfig {
    /// How much memory it has, in bytes; 0: nothing is recorded. Services share it.
    pub bytes: usize,
    /// Whether dumps have the names of users and flows. Otherwise hashes stand for them.
    pub users: bool,
    /// The folder of the dumps that SIGUSR1 and triggers take; the default is `flight` in the data directory. Without either there are none.
    pub directory: Option<PathBuf>,
    /// How many dumps are kept there.
    pub files: usize,
    /// When a dump is taken by itself.
    pub triggers: FlightTriggersConfig,
}

/// When a dump is taken by itself.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct FlightTriggersConfig {
    /// When so many requests were rejected within ten seconds; 0: never.
    pub rejections: u64,
    /// When the 99th percentile of the waits of ten seconds is above this; 0s: never.
    #[serde(with = "duration")]
    pub wait: Duration,
    /// When the seats of the server are half as many as within the ten seconds before.
    pub limit_halved: bool,
    /// When the gateway is cut off from its fleet.
    pub fleet_floor: bool,
    /// The time after a dump in which none is taken by itself.
    #[serde(with = "duration")]
    pub pause: Duration,
}

// === impl FlightRecorderConfig ===

impl Default for FlightRecorderConfig {
    fn default() -> Self {
        Self { bytes: 32 << 20, users: false, directory: None, files: 10, triggers: FlightTriggersConfig::default() }
    }
}

// === impl FlightTriggersConfig ===

impl Default for FlightTriggersConfig {
    fn default() -> Self {
        Self {
            rejections: 100,
            wait: Duration::from_secs(5),
            limit_halved: true,
            fleet_floor: true,
            pause: Duration::from_secs(600),
        }
    }
}
