//! Objects to write.

use bytes::Bytes;
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_api::{Kind, Version, validate};
use evenkeel_store::Object;

pub(crate) const SCHEMA: Kind = Kind::FlowSchema;
pub(crate) const LEVEL: Kind = Kind::PriorityLevelConfiguration;

/// A payload that can be told from others.
pub(crate) fn text(text: impl Into<String>) -> Bytes {
    Bytes::from(text.into())
}

/// An object as the store gets it in earnest: valid, in canonical v1 JSON.
pub(crate) fn json(kind: Kind, name: &str) -> Bytes {
    let json = match kind {
        Kind::FlowSchema => {
            let schema = FlowSchema::builder(name).priority_level("workload-low").matching_precedence(500).build();
            validate::create(&schema, Version::V1).unwrap();
            serde_json::to_vec(&schema)
        }
        Kind::PriorityLevelConfiguration => {
            let level = PriorityLevelConfiguration::builder(name).limited(|limited| limited.shares(5).reject()).build();
            validate::create(&level, Version::V1).unwrap();
            serde_json::to_vec(&level)
        }
    };
    json.unwrap().into()
}

pub(crate) fn names<'a>(objects: impl IntoIterator<Item = &'a std::sync::Arc<Object>>) -> Vec<&'a str> {
    objects.into_iter().map(|object| &*object.name).collect()
}
