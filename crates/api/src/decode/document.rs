//! `Document`: one value that was read, and the object it becomes.

use serde::Deserialize as _;
use serde::de::value::{Error as ValueError, MapDeserializer};

use super::check::{Findings, check};
use super::finding::{Dropped, Mismatch, Mismatches, Unknown};
use super::{Duplicate, Node, Value};
use crate::meta::ListMeta;
use crate::path::Path;
use crate::schema::{Shape, list_type};
use crate::v1::V1;
use crate::{Defaulted, HubSpec, List, Object, Spec, Version, Wire};

/// One JSON value, one YAML document or one protobuf message.
///
/// Not `#[non_exhaustive]`: programs that have a tree already make it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The value.
    pub root: Node,
    /// The names that occurred twice in one map.
    pub duplicates: Vec<Duplicate>,
    /// The format of the text.
    pub format: Format,
}

/// The format of a text.
///
/// Not `#[non_exhaustive]`: code that reads or writes objects has to know every format.
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
#[non_exhaustive]
pub struct Decoded<S: Spec> {
    /// The object in the hub version, its defaults filled in.
    pub object: Object<V1, S>,
    /// The fields that were dropped.
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

impl Document {
    /// The list of objects of the kind of `S` that the document holds, written in `version`. The objects are in the hub
    /// version, with their defaults filled in; a value of the wrong type in any of them refuses the list.
    ///
    /// ```
    /// use evenkeel_api::decode::parse_json;
    /// use evenkeel_api::{Version, v1::FlowSchemaSpec};
    ///
    /// let body = br#"{"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "batch"}, "spec": {}}]}"#;
    /// let list = parse_json(body)?.decode_list::<FlowSchemaSpec>(Version::V1beta3)?;
    /// assert_eq!((list.metadata.resource_version.as_str(), list.items[0].spec.matching_precedence), ("7", 1000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decode_list<S: HubSpec>(&self, version: Version) -> Result<List<V1, S>, Mismatches> {
        let shape = Shape::Object(list_type(version, S::KIND));
        let Findings { unknown, mismatches } = check(shape, &self.root, &Path::Root, S::KIND, version);
        Mismatches::refuse(mismatches, unknown)?;
        let metadata = match self.root.get("metadata") {
            Some(metadata) => ListMeta::deserialize(metadata).map_err(|error| unread(&error, metadata, &Path::Root))?,
            None => ListMeta::default(),
        };
        let path = Path::new("items");
        let items = match self.root.get("items").map(|items| &items.value) {
            Some(Value::List(items)) => items.as_slice(),
            _ => &[],
        };
        let items = items.iter().enumerate().map(|(index, item)| Ok(decode_node(item, &path.index(index), version)?.0));
        Ok(List::new(metadata, items.collect::<Result<_, Mismatches>>()?))
    }
}

impl From<&serde_json::Value> for Document {
    fn from(value: &serde_json::Value) -> Self {
        Self { root: value.into(), duplicates: Vec::new(), format: Format::Json }
    }
}

/// The object of the kind of `S` that a part of a document holds, written in `version`, and the fields that it does not have.
///
/// Paths begin at the part. The members `apiVersion` and `kind` are left to the caller.
pub fn decode_part<S: HubSpec>(part: &Node, version: Version) -> Read<S> {
    decode_node(part, &Path::Root, version)
}

/// An object that was read and the fields that were dropped from it.
pub type Read<S> = Result<(Object<V1, S>, Vec<Unknown>), Mismatches>;

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
    let mut object: W = read(node).map_err(|error| unread(&error, node, path))?;
    object.apply_defaults();
    Ok((object.into_hub(), unknown))
}

/// The check accepted something that the type does not.
fn unread(error: &ValueError, node: &Node, path: &Path<'_>) -> Mismatch {
    let message = error.to_string();
    Mismatch { path: path.to_string(), at: node.at, wire_message: message.clone(), message }
}

fn read<W: Wire>(node: &Node) -> Result<W, ValueError> {
    let members = match &node.value {
        Value::Map(members) => members.as_slice(),
        _ => &[],
    };
    let members = members.iter().filter(|member| !matches!(member.key.as_str(), "kind" | "apiVersion"));
    W::deserialize(MapDeserializer::new(members.map(|member| (member.key.as_str(), &member.value))))
}
