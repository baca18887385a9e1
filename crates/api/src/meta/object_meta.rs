//! `ObjectMeta`: what every object says of itself.

use std::collections::BTreeMap;

use super::{ManagedFieldsEntry, OwnerReference, Time};
use crate::schema::{ListType, PatchRule, TypeName, declare_type};

declare_type! {
    /// What every object says of itself: its name, its identity and history, and what people and programs
    /// have attached to it.
    pub struct ObjectMeta(TypeName::Fixed("ObjectMeta"), Meta) {
        /// The name, unique among the objects of its kind. It cannot be changed.
        name "name" = 1: String [],
        /// A prefix from which the server makes up a unique name when `name` is not given.
        generate_name "generateName" = 2: String [],
        /// The identity of this very object. Another object of the same name, made later, has another one.
        /// Set by the server.
        uid "uid" = 5: String [],
        /// The version of the object. It changes with every write; sent back with an update, it makes sure that
        /// nobody else has changed the object in between. Compare it only for equality. Set by the server.
        resource_version "resourceVersion" = 6: String [],
        /// Goes up by one each time the specification changes. Set by the server.
        generation "generation" = 7: i64 [],
        /// When the object was created. Set by the server.
        creation_timestamp "creationTimestamp" = 8: Option<Time> [zero_if_absent],
        /// When deletion was asked for. The object stays until its list of finalizers is empty. Set by the server.
        deletion_timestamp "deletionTimestamp" = 9: Option<Time> [],
        /// How many seconds the object was given to end by itself. Set by the server.
        deletion_grace_period_seconds "deletionGracePeriodSeconds" = 10: Option<i64> [],
        /// Short texts by which objects are selected.
        labels "labels" = 11: BTreeMap<String, String> [],
        /// Texts of any content that people and tools keep with the object.
        annotations "annotations" = 12: BTreeMap<String, String> [],
        /// The objects that this one depends on.
        owner_references "ownerReferences" = 13: Vec<OwnerReference>
            [list(ListType::Map("uid")) patch(PatchRule::Merge)],
        /// Who has to agree before a deleted object is gone: each name is taken off the list by the program
        /// that put it there.
        finalizers "finalizers" = 14: Vec<String> [list(ListType::Set) patch(PatchRule::Merge)],
        /// Which program set which field, and how. Kept by the server for server-side apply.
        managed_fields "managedFields" = 17: Vec<ManagedFieldsEntry> [list(ListType::Atomic)],
    }
    accepted_and_dropped {
        /// Both kinds live outside of namespaces; a value sent here is dropped.
        "namespace" = 3: String,
        /// No longer in use; a value sent here is dropped.
        "selfLink" = 4: String,
    }
}

impl ObjectMeta {
    /// The metadata of a new object of that name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }
}
