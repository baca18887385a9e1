//! The number of seats, or the settings of a limit that finds itself.

use std::fmt;
use std::path::{Path, PathBuf};

use evenkeel::limit::Concurrency;
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The settings of a limit that finds itself (`concurrency: auto`).
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct LimitConfig {
    /// The file that keeps what the limit has learnt, for the next start. With a data directory, the default is `limit.json` there.
    pub state_file: Option<PathBuf>,
    /// A metric of the service that keeps the limit from rising while it is above a number.
    pub hold_while: Option<HoldWhile>,
}

/// A metric of a service that keeps the limit from rising.
///
/// Not `#[non_exhaustive]`: all of it has to be given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HoldWhile {
    /// The page of metrics, as Prometheus reads it: a URL that begins with `http:` or `https:`.
    pub url: String,
    /// The name of the metric. The values of all its series are added up.
    pub metric: String,
    /// The limit does not rise while the metric is above this.
    pub above: f64,
}

/// The state file of a service, beside that of the gateway: `limit-shop.json` beside `limit.json`.
pub(super) fn beside(file: &Path, service: &str) -> PathBuf {
    let mut name = file.file_stem().unwrap_or_default().to_owned();
    name.push("-");
    name.push(service);
    if let Some(extension) = file.extension() {
        name.push(".");
        name.push(extension);
    }
    file.with_file_name(name)
}

/// `concurrency` as a setting: a number, or a text.
pub(super) mod concurrency {
    use super::{Concurrency, ConcurrencyVisitor, Deserializer, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(value: &Concurrency, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Concurrency::Fixed(seats) => serializer.serialize_u32(*seats),
            Concurrency::Auto(_) => serializer.collect_str(value),
        }
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Concurrency, D::Error> {
        deserializer.deserialize_any(ConcurrencyVisitor)
    }

    /// A number of seats that the settings may leave out.
    pub(in super::super) mod optional {
        use super::{Concurrency, Deserializer, Serializer};

        #[expect(clippy::ref_option, reason = "serde passes it so")]
        pub(in super::super::super) fn serialize<S: Serializer>(
            value: &Option<Concurrency>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match value {
                Some(value) => super::serialize(value, serializer),
                None => serializer.serialize_none(),
            }
        }

        pub(in super::super::super) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Concurrency>, D::Error> {
            super::deserialize(deserializer).map(Some)
        }
    }
}

struct ConcurrencyVisitor;

/// The form that error messages ask for.
const EXPECTED: &str = "a whole number from 1 to 4294967295, written in digits, as `40`, or `auto`, or `auto:10..400`";

// === impl LimitConfig ===

impl LimitConfig {
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

// === impl ConcurrencyVisitor ===

impl Visitor<'_> for ConcurrencyVisitor {
    type Value = Concurrency;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_u64<E: Error>(self, seats: u64) -> Result<Concurrency, E> {
        let seats = u32::try_from(seats).map_err(|_| E::custom(format!("is {seats}, but must be {EXPECTED}")))?;
        Ok(Concurrency::Fixed(seats))
    }

    fn visit_i64<E: Error>(self, seats: i64) -> Result<Concurrency, E> {
        match u64::try_from(seats) {
            Ok(seats) => self.visit_u64(seats),
            Err(_) => Err(E::custom(format!("is {seats}, but must be {EXPECTED}"))),
        }
    }

    fn visit_f64<E: Error>(self, seats: f64) -> Result<Concurrency, E> {
        Err(E::custom(format!("is {seats}, but must be {EXPECTED}")))
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<Concurrency, E> {
        Err(E::custom(format!("is {is}, but must be {EXPECTED}")))
    }

    fn visit_unit<E: Error>(self) -> Result<Concurrency, E> {
        Err(E::custom(format!("is empty, but must be {EXPECTED}")))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Concurrency, E> {
        match text.parse() {
            Ok(found @ Concurrency::Auto(_)) => Ok(found),
            Ok(Concurrency::Fixed(_)) => Err(E::invalid_type(Unexpected::Str(text), &self)),
            Err(problem) if text.starts_with("auto:") => Err(E::custom(format!("is {text:?}: {problem}"))),
            Err(_) => Err(E::custom(format!("is {text:?}, but must be {EXPECTED}"))),
        }
    }
}
