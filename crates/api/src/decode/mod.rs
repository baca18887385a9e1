//! From text to objects: JSON and YAML, strict or lenient; and from protobuf, in which there is nothing to be strict about.
//!
//! A text is read into a tree that keeps the place of every value, the tree is held against the schema table, and
//! what fits becomes an object with its defaults filled in, in the hub version. What does not fit is reported all
//! at once: fields that the type does not have, names that occur twice, values of the wrong type.
//!
//! [`Manifest`] reads whole files; [`Document::decode`] is for one object whose kind and version are known, as the
//! body of a request is.
//!
//! ```
//! use evenkeel_api::decode::parse_json;
//! use evenkeel_api::{Version, v1::FlowSchemaSpec};
//!
//! let body = br#"{"metadata": {"name": "batch"}, "spec": {"priority": 5, "rules": []}}"#;
//! let decoded = parse_json(body)?.decode::<FlowSchemaSpec>(Version::V1)?;
//! assert_eq!(decoded.object.spec.matching_precedence, 1000);
//! assert_eq!(decoded.dropped.warnings(), [r#"unknown field "spec.priority""#]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod check;
mod document;
mod finding;
mod json;
mod manifest;
mod problem;
mod protobuf;
mod tree;
mod typed;
mod yaml;
mod yaml_scalar;

pub use document::{Decoded, Document, Format, Read, decode_part};
pub use finding::{Dropped, Mismatch, Mismatches, SyntaxError, Unknown};
pub use json::parse_json;
pub use manifest::{Manifest, ManifestEntry, Strictness};
pub use problem::{Problem, Problems};
pub use protobuf::parse_protobuf;

pub use tree::{Duplicate, Member, Node, Position, Value};
pub use yaml::parse_yaml;

/// Reads a text of either format: one JSON value, or YAML of one or more documents.
///
/// A text that starts like a JSON object is read as JSON if it is that, since only JSON keeps its numbers as written.
pub fn parse_text(text: &[u8]) -> Result<Vec<Document>, SyntaxError> {
    if text.trim_ascii_start().starts_with(b"{")
        && let Ok(document) = parse_json(text)
    {
        return Ok(vec![document]);
    }
    parse_yaml(text)
}

/// The text as UTF-8, or where it stops being that.
fn utf8(text: &[u8]) -> Result<&str, SyntaxError> {
    std::str::from_utf8(text).map_err(|error| {
        let before = String::from_utf8_lossy(&text[..error.valid_up_to()]);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let at = Position {
            line: narrow(before.matches('\n').count() + 1),
            column: narrow(before[line_start..].chars().count() + 1),
        };
        SyntaxError { at, message: "not UTF-8".to_owned() }
    })
}
