//! Settings that are durations.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) use evenkeel_api::duration::{parse, text};

pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&text(*duration))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// Durations that may be absent.
pub(super) mod optional {
    use std::time::Duration;

    use serde::{Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(in super::super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// A field that is there has a value.
    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}
