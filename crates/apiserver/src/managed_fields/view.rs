//! Objects as the JSON of a version, and back.

use evenkeel_api::decode::Node;
use evenkeel_api::meta::ObjectMeta;
use evenkeel_api::v1::V1;
use evenkeel_api::{Defaulted, HubSpec, Object, Version, Wire};
use serde::de::value::Error;
use serde_json::Value;

/// The treatment of members that an object leaves out and that have a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defaults {
    /// Defaults are filled in.
    FillIn,
    /// Defaults stay left out.
    LeaveOut,
}

/// The object as that version writes it, without its managed fields.
pub(crate) fn view<S: HubSpec>(object: &Object<V1, S>, version: Version) -> Value {
    let bare = without_managed_fields(object);
    // The types of the group are always written: they have no keys but texts.
    serde_json::to_value(bare.in_version(version)).unwrap_or_default()
}

/// The object that such JSON stands for.
pub(crate) fn read<S: HubSpec>(value: &Value, version: Version, defaults: Defaults) -> Result<Object<V1, S>, Error> {
    match version {
        Version::V1 => read_as::<S::V1>(value, defaults),
        Version::V1beta3 => read_as::<S::V1beta3>(value, defaults),
        Version::V1beta2 => read_as::<S::V1beta2>(value, defaults),
        Version::V1beta1 => read_as::<S::V1beta1>(value, defaults),
    }
}

fn read_as<W: Wire + Defaulted>(value: &Value, defaults: Defaults) -> Result<Object<V1, W::HubSpec>, Error> {
    let mut object = W::deserialize(&Node::from(value))?;
    if defaults == Defaults::FillIn {
        object.apply_defaults();
    }
    Ok(object.into_hub())
}

fn without_managed_fields<S: HubSpec>(object: &Object<V1, S>) -> Object<V1, S> {
    let old = &object.metadata;
    let metadata = ObjectMeta {
        name: old.name.clone(),
        uid: old.uid.clone(),
        resource_version: old.resource_version.clone(),
        generation: old.generation,
        creation_timestamp: old.creation_timestamp,
        ..ownable(old)
    };
    let mut bare = Object::new(metadata, object.spec.clone());
    bare.status = object.status.clone();
    bare
}

/// The fields of the metadata that a manager can own (API-131).
fn ownable(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        generate_name: metadata.generate_name.clone(),
        deletion_timestamp: metadata.deletion_timestamp,
        deletion_grace_period_seconds: metadata.deletion_grace_period_seconds,
        labels: metadata.labels.clone(),
        annotations: metadata.annotations.clone(),
        owner_references: metadata.owner_references.clone(),
        finalizers: metadata.finalizers.clone(),
        ..ObjectMeta::default()
    }
}

/// Two states of an object as that version writes them, to be compared: what nobody can own and what is the same in both
/// may be left out, since writing it is most of the work.
pub(crate) fn view_both<S: HubSpec>(old: &Object<V1, S>, new: &Object<V1, S>, version: Version) -> (Value, Value) {
    // This version writes zero shares among the annotations too, and so shows the metadata only with the specification.
    let is_same_spec = old.spec == new.spec && version != Version::V1beta3;
    let is_same_status = old.status == new.status;
    let view = |object: &Object<V1, S>| {
        let spec = if is_same_spec { S::default() } else { object.spec.clone() };
        let mut part = Object::new(ownable(&object.metadata), spec);
        if !is_same_status {
            part.status = object.status.clone();
        }
        serde_json::to_value(part.in_version(version)).unwrap_or_default()
    };
    (view(old), view(new))
}
