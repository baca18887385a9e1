//! The settings of the log.

use serde::{Deserialize, Serialize};

/// What is written to standard error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LogConfig {
    /// For people or for machines.
    pub format: LogFormat,
    /// What is worth a line: a level (`error`, `warn`, `info`, `debug`, `trace`) or several for parts, as
    /// `info,evenkeel_gateway=debug`.
    pub filter: String,
    /// How many rejected requests a second get a line of their own. The rest are counted in one line.
    pub rejections_per_second: u32,
}

/// How a line looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Text,
    /// An object of JSON a line, for machines.
    Json,
}

// === impl LogConfig ===

impl Default for LogConfig {
    fn default() -> Self {
        Self { format: LogFormat::default(), filter: "info".to_owned(), rejections_per_second: 10 }
    }
}
