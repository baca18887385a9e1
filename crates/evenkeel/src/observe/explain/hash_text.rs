//! A hash of 64 bits as text in JSON. An older gateway sends a number.

use serde::{Deserialize, Deserializer, Serializer, de};

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Number(u64),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(super) fn serialize<S: Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:#018x}"))
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    match Written::deserialize(deserializer)? {
        Written::Number(number) => Ok(number),
        Written::Text(text) => {
            let digits = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
            digits.ok_or_else(|| de::Error::custom(format!("{text:?} is not a hash such as 0x00c0ffee00c0ffee")))
        }
    }
}
