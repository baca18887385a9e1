//! Durations as people write them: `10s`, `1m30s`, `250ms`. For `#[serde(with = "…")]` of settings.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de};

pub use evenkeel_api::duration::{parse, text};

/// Serializes a duration as [`text`] writes it.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*duration))
}

/// Deserializes a duration as [`parse`] reads it.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// Durations that may be absent.
pub mod optional {
    use std::time::Duration;

    use serde::{Deserializer, Serializer};

    /// Serializes a duration that may be absent.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Deserializes a field that is there, and so has a value.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}
