//! Addresses of upstreams as text.

use http::Uri;
use serde::{Deserialize, Deserializer, Serializer, de};

pub(super) fn serialize<S: Serializer>(uri: &Uri, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&uri.to_string())
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
    super::upstream::parse_upstream(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}
