//! Random metadata.

use std::collections::BTreeMap;

use evenkeel_api::bootstrap::AUTO_UPDATE_ANNOTATION;
use evenkeel_api::meta::{FieldSet, ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};
use evenkeel_api::v1beta3::PRESERVE_ZERO_ANNOTATION;
use proptest::collection::btree_map;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{few, name, text};

/// The metadata of an object.
pub fn object_meta() -> BoxedStrategy<ObjectMeta> {
    prop_oneof![sound_object_meta(), wild_object_meta()].boxed()
}

/// Metadata as a manifest has it: a name and perhaps labels and annotations.
pub fn sound_object_meta() -> BoxedStrategy<ObjectMeta> {
    let annotation_key = prop_oneof![Just(AUTO_UPDATE_ANNOTATION.to_owned()), "example\\.com/[a-z]{1,4}"];
    (name(), btree_map("[a-z]{1,4}", "[a-z0-9]{0,4}", 0..=2), btree_map(annotation_key, text(), 0..=2))
        .prop_map(|(name, labels, annotations)| ObjectMeta { labels, annotations, ..ObjectMeta::named(name) })
        .boxed()
}

/// Metadata in which any member may hold anything.
pub fn wild_object_meta() -> BoxedStrategy<ObjectMeta> {
    let names = (text(), text(), text(), text());
    let history = (any::<i64>(), option::of(time()), option::of(time()), option::of(any::<i64>()));
    let attachments = (texts(), texts(), few(owner_reference()), few(text()), few(managed_fields_entry()));
    (names, history, attachments)
        .prop_map(|(names, history, attachments)| ObjectMeta {
            name: names.0,
            generate_name: names.1,
            uid: names.2,
            resource_version: names.3,
            generation: history.0,
            creation_timestamp: history.1,
            deletion_timestamp: history.2,
            deletion_grace_period_seconds: history.3,
            labels: attachments.0,
            annotations: attachments.1,
            owner_references: attachments.2,
            finalizers: attachments.3,
            managed_fields: attachments.4,
        })
        .boxed()
}

/// The last time that the types of other crates can hold as well; it is a day short of the last that can be written.
const TIME_MAX: i64 = 253_402_207_200;

/// Any time that can be written, but for the last day.
pub fn time() -> BoxedStrategy<Time> {
    prop_oneof![Just(0), 1_600_000_000..1_800_000_000_i64, i64::MIN..=TIME_MAX]
        .prop_map(Time::from_unix_seconds)
        .boxed()
}

fn texts() -> BoxedStrategy<BTreeMap<String, String>> {
    btree_map(prop_oneof![text(), Just(PRESERVE_ZERO_ANNOTATION.to_owned())], text(), 0..=3).boxed()
}

fn owner_reference() -> BoxedStrategy<OwnerReference> {
    (text(), text(), text(), text(), any::<Option<bool>>(), any::<Option<bool>>())
        .prop_map(|(api_version, kind, name, uid, controller, block_owner_deletion)| OwnerReference {
            api_version,
            kind,
            name,
            uid,
            controller,
            block_owner_deletion,
        })
        .boxed()
}

fn managed_fields_entry() -> BoxedStrategy<ManagedFieldsEntry> {
    (text(), text(), text(), option::of(time()), text(), option::of(field_set()), text())
        .prop_map(|(manager, operation, api_version, time, fields_type, fields_v1, subresource)| ManagedFieldsEntry {
            manager,
            operation,
            api_version,
            time,
            fields_type,
            fields_v1,
            subresource,
        })
        .boxed()
}

fn field_set() -> BoxedStrategy<FieldSet> {
    let tree = Just(json!({})).prop_recursive(3, 8, 3, |below| {
        btree_map("(f:[a-z]{1,4}|v:\"[a-z]\"|\\.)", below, 0..=3)
            .prop_map(|members| Value::Object(members.into_iter().collect()))
    });
    tree.prop_map(FieldSet::from).boxed()
}
