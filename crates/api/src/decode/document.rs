//! `Document`: one value that was read, and the object it becomes.

use serde::de::value::{Error as ValueError, MapDeserializer};

use super::check::{Findings, check};
use super::finding::{Dropped, Mismatch, Mismatches, Unknown};
use super::{Duplicate, Node, Value};
use crate::path::Path;
use crate::v1::V1;
use crate::{Defaulted, HubSpec, Object, Spec, Version, Wire};

/// One JSON value, one YAML document or one protobuf message.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value.
    pub root: Node,
    /// The names that occurred twice in one map.
    pub duplicates: Vec<Duplicate>,
    /// What the text was written in.
    pub format: Format,
}

/// What a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Protobuf. Unknown fields and repeated ones are part of the format, and never reported.
    Protobuf,
}

/// An object that was read, and what was dropped on the way.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded<S: Spec> {
    /// The object in the hub version, its defaults filled in.
    pub object: Object<V1, S>,
    /// What was dropped.
    pub dropped: Dropped,
}

// === impl Document ===

impl Document {
    /// The object of the kind of `S` that the document holds, written in `version`.
    ///
    /// The members `apiVersion` and `kind` are left to the caller, who knows what it expects.
    pub fn decode<S: HubSpec>(&self, version: Version) -> Result<Decoded<S>, Mismatches> {
        let (object, unknown) = decode_node(&self.root, &Path::Root, version)?;
        let dropped = Dropped { format: self.format, duplicates: self.duplicates.clone(), unknown };
        Ok(Decoded { object, dropped })
    }
}

impl From<&serde_json::Value> for Document {
    fn from(value: &serde_json::Value) -> Self {
        Self { root: value.into(), duplicates: Vec::new(), format: Format::Json }
    }
}

/// An object that was read and the fields that were dropped from it.
type Read<S> = Result<(Object<V1, S>, Vec<Unknown>), Mismatches>;

/// The object that a part of a document holds, and the fields that were dropped from it.
pub(super) fn decode_node<S: HubSpec>(node: &Node, path: &Path<'_>, version: Version) -> Read<S> {
    match version {
        Version::V1 => decode_as::<S::V1>(node, path, version),
        Version::V1beta3 => decode_as::<S::V1beta3>(node, path, version),
        Version::V1beta2 => decode_as::<S::V1beta2>(node, path, version),
        Version::V1beta1 => decode_as::<S::V1beta1>(node, path, version),
    }
}

fn decode_as<W: Wire + Defaulted>(node: &Node, path: &Path<'_>, version: Version) -> Read<W::HubSpec> {
    let Findings { unknown, mismatches } = check(W::SHAPE, node, path, W::HubSpec::KIND, version);
    let unknown = Mismatches::refuse(mismatches, unknown)?;
    let mut object: W = read(node).map_err(|error| {
        // The check let something pass that the type does not take.
        let message = error.to_string();
        Mismatch { path: path.to_string(), at: node.at, wire_message: message.clone(), message }
    })?;
    object.apply_defaults();
    Ok((object.into_hub(), unknown))
}

fn read<W: Wire>(node: &Node) -> Result<W, ValueError> {
    let members = match &node.value {
        Value::Map(members) => members.as_slice(),
        _ => &[],
    };
    let members = members.iter().filter(|member| !matches!(member.key.as_str(), "kind" | "apiVersion"));
    W::deserialize(MapDeserializer::new(members.map(|member| (member.key.as_str(), &member.value))))
}
