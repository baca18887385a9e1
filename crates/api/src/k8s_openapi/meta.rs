//! The types of `meta/v1`.

use ::k8s_openapi::apimachinery::pkg::apis::meta::v1 as k8s;
use ::k8s_openapi::jiff::Timestamp;

use super::same_type;
use crate::meta::{FieldSet, ListMeta, ManagedFieldsEntry, ObjectMeta, OwnerReference, Time};

same_type!(ObjectMeta = k8s::ObjectMeta {
    name = name: unless_empty,
    generate_name = generate_name: unless_empty,
    uid = uid: unless_empty,
    resource_version = resource_version: unless_empty,
    generation = generation: unless_empty,
    creation_timestamp = creation_timestamp: optional,
    deletion_timestamp = deletion_timestamp: optional,
    deletion_grace_period_seconds = deletion_grace_period_seconds: same,
    labels = labels: unless_empty,
    annotations = annotations: unless_empty,
    owner_references = owner_references: list_unless_empty,
    finalizers = finalizers: unless_empty,
    managed_fields = managed_fields: list_unless_empty,
    // `namespace` and `selfLink`, which the objects do not have.
    ..Self::default()
});

same_type!(ListMeta = k8s::ListMeta {
    resource_version = resource_version: unless_empty,
    continue_token = continue_: unless_empty,
    remaining_item_count = remaining_item_count: same,
    // `selfLink`, and what newer Kubernetes versions have.
    ..Self::default()
});

same_type!(OwnerReference = k8s::OwnerReference {
    api_version = api_version: same,
    kind = kind: same,
    name = name: same,
    uid = uid: same,
    controller = controller: same,
    block_owner_deletion = block_owner_deletion: same,
});

same_type!(ManagedFieldsEntry = k8s::ManagedFieldsEntry {
    manager = manager: unless_empty,
    operation = operation: unless_empty,
    api_version = api_version: unless_empty,
    time = time: optional,
    fields_type = fields_type: unless_empty,
    fields_v1 = fields_v1: optional,
    subresource = subresource: unless_empty,
});

impl From<FieldSet> for k8s::FieldsV1 {
    fn from(ours: FieldSet) -> Self {
        Self(ours.tree())
    }
}

impl From<k8s::FieldsV1> for FieldSet {
    fn from(theirs: k8s::FieldsV1) -> Self {
        Self::from(theirs.0)
    }
}

impl From<Time> for k8s::Time {
    fn from(ours: Time) -> Self {
        // Only the last day of our times lies beyond theirs.
        Self(Timestamp::from_second(ours.unix_seconds()).unwrap_or(Timestamp::MAX))
    }
}

impl From<k8s::Time> for Time {
    fn from(theirs: k8s::Time) -> Self {
        // Before 1970 the fraction is negative, and dropping it would lead to a later second.
        let borrow = i64::from(theirs.0.subsec_nanosecond() < 0);
        Self::from_unix_seconds(theirs.0.as_second() - borrow)
    }
}
