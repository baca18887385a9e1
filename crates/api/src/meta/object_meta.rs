//! `ObjectMeta`: what every object says of itself.

use std::collections::BTreeMap;

use super::{ManagedFieldsEntry, OwnerReference, Time};
use crate::schema::{ListType, PatchRule, TypeName, declare_type};

declare_type! {
    /// The metadata of an object: its name, identity and history, and what people and programs have attached to it.
    pub struct ObjectMeta(TypeName::Fixed("ObjectMeta"), Meta) {
        /// The name, unique among the objects of its kind. It cannot be changed.
        name "name" = 1: String [],
        /// A prefix from which the server generates a unique name if `name` is absent.
        generate_name "generateName" = 2: String [],
        /// The unique ID of this object. A later object with the same name has another one. Set by the server.
        uid "uid" = 5: String [read_only],
        /// The version of the object, which changes with every write. An update that contains it fails if the object
        /// has been changed in between. Compare it only for equality. Set by the server.
        resource_version "resourceVersion" = 6: String [read_only],
        /// A number that grows by one each time the specification changes. Set by the server.
        generation "generation" = 7: i64 [read_only],
        /// When the object was created. Set by the server.
        creation_timestamp "creationTimestamp" = 8: Option<Time> [zero_if_absent read_only],
        /// When deletion was requested. The object stays until its list of finalizers is empty. Set by the server.
        deletion_timestamp "deletionTimestamp" = 9: Option<Time> [read_only],
        /// How many seconds the object has for a graceful deletion. Set by the server.
        deletion_grace_period_seconds "deletionGracePeriodSeconds" = 10: Option<i64> [read_only],
        /// Short key-value pairs that select objects.
        labels "labels" = 11: BTreeMap<String, String> [],
        /// Arbitrary key-value pairs that people and tools attach to the object.
        annotations "annotations" = 12: BTreeMap<String, String> [],
        /// The objects that this one depends on.
        owner_references "ownerReferences" = 13: Vec<OwnerReference>
            [list(ListType::Map("uid")) patch(PatchRule::Merge)],
        /// Names that must be removed before a deleted object is gone. Each is removed by the program that added it.
        finalizers "finalizers" = 14: Vec<String> [list(ListType::Set) patch(PatchRule::Merge)],
        /// Which program set which field, and how. Kept by the server for server-side apply.
        managed_fields "managedFields" = 17: Vec<ManagedFieldsEntry> [list(ListType::Atomic)],
    }
    accepted_and_dropped {
        /// Objects of both kinds have no namespace; a value sent here is dropped.
        "namespace" = 3: String,
        /// No longer used; a value sent here is dropped.
        "selfLink" = 4: String,
    }
}

impl ObjectMeta {
    /// The metadata of a new object of that name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}
