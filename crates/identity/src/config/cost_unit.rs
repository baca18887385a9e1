//! Units of cost, as people write them: `bytes`, `header:X-Cost`. For `#[serde(with = "…")]` of settings.

use evenkeel_api::annotations::CostUnit;
use serde::{Deserialize, Deserializer, Serializer, de};

/// Serializes a unit that may be absent.
#[expect(clippy::ref_option, reason = "serde asks for it")]
pub(super) fn serialize<S: Serializer>(unit: &Option<CostUnit>, serializer: S) -> Result<S::Ok, S::Error> {
    match unit {
        Some(unit) => serializer.collect_str(unit),
        None => serializer.serialize_none(),
    }
}

/// Deserializes a field that is there, and so has a value.
pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<CostUnit>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse()
        .map(Some)
        .map_err(|error| de::Error::custom(format!("{text:?} is not what costs are counted in: it {error}")))
}
