//! The settings of the log.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The log of the gateway on standard error, and the access log with a line for each request.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LogConfig {
    /// For people or for machines.
    pub format: LogFormat,
    /// Which events get a line: a level (`error`, `warn`, `info`, `debug`, `trace`) or several for parts, as
    /// `info,evenkeel_gateway=debug`.
    pub filter: String,
    /// How many rejected requests a second get a line of their own. The rest are counted in one line.
    pub rejections_per_second: u32,
    /// The access log: one line for each request, when it has ended.
    pub access: AccessLogFormat,
    /// The part of all requests that get a line in the access log, from 0 to 1.
    pub access_sample: f64,
    /// The file that the access log is appended to. Without one it is standard output. A file that is renamed or removed is
    /// made anew within a second.
    pub access_file: Option<PathBuf>,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// An object of JSON a line, for machines.
    Json,
}

/// How a line of the access log looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AccessLogFormat {
    /// No log.
    #[default]
    Off,
    /// An object of JSON a line, which `evenkeel replay` reads.
    Json,
    /// `name=value` pairs, for people.
    Text,
}

// === impl LogConfig ===

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            format: LogFormat::default(),
            filter: "info".to_owned(),
            rejections_per_second: 10,
            access: AccessLogFormat::default(),
            access_sample: 1.0,
            access_file: None,
        }
    }
}
