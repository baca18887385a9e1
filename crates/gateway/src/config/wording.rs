//! Errors about values, in the words of settings instead of those of YAML.

use evenkeel_api::decode::Value;
use evenkeel_api::spelling;
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

/// The error for a setting that is there twice.
pub(super) const DUPLICATE: &str = "appears twice; write it once, with all that belongs to it";

/// The error for a value that was found under this name, with what to do.
pub(super) fn message(error: &Error, field: &str, found: Option<&Value>) -> String {
    let error = error.without_snippet();
    let own = match (error, found) {
        (Error::InvalidScalar { ty, .. }, Some(found)) => number(ty, found),
        (Error::InvalidBooleanStrict { .. }, Some(found)) => {
            Some(format!("{}, but must be true or false", found.describe("a group of settings")))
        }
        (Error::Unexpected { expected, .. }, Some(found)) => shape(expected, field, found),
        (Error::SerdeUnknownField { field: name, expected, .. }, _) => Some(unknown(name, expected)),
        _ => None,
    };
    own.unwrap_or_else(|| UserMessageFormatter.format_message(error).into_owned())
}

/// For a setting that there is not.
fn unknown(name: &str, known: &[&str]) -> String {
    match spelling::closest(name, known) {
        Some(meant) => format!("unknown setting `{name}`; did you mean `{meant}`?"),
        None => format!("unknown setting `{name}`; known ones are {}", known.join(", ")),
    }
}

/// For a number that is none, or too large.
fn number(kind: &str, found: &Value) -> Option<String> {
    let most = match kind {
        "u8" => u64::from(u8::MAX),
        "u16" => u64::from(u16::MAX),
        "u32" => u64::from(u32::MAX),
        "u64" | "usize" => u64::MAX,
        _ => return None,
    };
    Some(format!(
        "{}, but must be a whole number from 0 to {most}, written in digits, as `40`",
        found.describe("a group of settings")
    ))
}

/// For a value in the place of a list, and so on.
fn shape(expected: &str, field: &str, found: &Value) -> Option<String> {
    let wanted = match expected {
        "mapping start" => match (field, field.rsplit_once('.').map_or(field, |(_, last)| last)) {
            ("", _) => "must be settings; write a line `name: value` for each, as `concurrency: 40`".to_owned(),
            (_, last) if last.starts_with("upstreams[") => item("url", "http://127.0.0.1:9000"),
            (_, last) if last.starts_with("listen[") => item("address", "127.0.0.1:8080"),
            (_, last) if last.starts_with("routes[") => item("path", "/reports/{name...}"),
            (_, last) if last.starts_with("sources[") => item("address", "{}"),
            _ => "must be a group of settings; write them below it, each as `name: value`".to_owned(),
        },
        "sequence start" => "must be a list; begin each item with `- `, or write `[one, two]`".to_owned(),
        "string scalar" => "must be text".to_owned(),
        _ => return None,
    };
    Some(format!("{}, but {wanted}", found.describe("a group of settings")))
}

fn item(name: &str, value: &str) -> String {
    format!("must be a group of settings; write it as `- {name}: {value}`")
}
