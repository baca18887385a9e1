//! Objects as the JSON of a version, and back.

use evenkeel_api::decode::Node;
use evenkeel_api::v1::V1;
use evenkeel_api::{Defaulted, HubSpec, Object, Version, Wire};
use serde::de::value::Error;
use serde_json::Value;

/// What becomes of the members that an object leaves out and that have a default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defaults {
    /// They are filled in.
    FillIn,
    /// They stay left out.
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
    let metadata = evenkeel_api::meta::ObjectMeta {
        name: old.name.clone(),
        generate_name: old.generate_name.clone(),
        uid: old.uid.clone(),
        resource_version: old.resource_version.clone(),
        generation: old.generation,
        creation_timestamp: old.creation_timestamp,
        deletion_timestamp: old.deletion_timestamp,
        deletion_grace_period_seconds: old.deletion_grace_period_seconds,
        labels: old.labels.clone(),
        annotations: old.annotations.clone(),
        owner_references: old.owner_references.clone(),
        finalizers: old.finalizers.clone(),
        managed_fields: Vec::new(),
    };
    let mut bare = Object::new(metadata, object.spec.clone());
    bare.status = object.status.clone();
    bare
}
