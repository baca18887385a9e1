//! Names of headers as text.

use http::HeaderName;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(super) fn serialize<S: Serializer>(name: &HeaderName, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(name.as_str())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HeaderName, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map_err(|_| {
        let fault = format!("{text:?} is not the name of a header; write one of letters, digits and hyphens");
        de::Error::custom(fault)
    })
}
