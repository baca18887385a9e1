//! `OwnerBuilder`: builds the owner reference of an object.

use std::marker::PhantomData;

use super::state::{HasOwner, NoName, NoObject, NoUid, WithOwner};
use crate::meta::OwnerReference;

/// Builds the owner reference of an object: kind, name and UID, in this order.
///
/// ```
/// use evenkeel_api::v1::FlowSchema;
///
/// let schema = FlowSchema::builder("batch")
///     .priority_level("tenants")
///     .owned_by(|o| o.object("v1", "ConfigMap").name("tenants").uid("5e0a").controller())
///     .build();
/// assert_eq!(schema.metadata.owner_references[0].controller, Some(true));
/// ```
#[derive(Debug, Clone)]
#[must_use = "an owner does nothing unless it is returned from the closure"]
pub struct OwnerBuilder<State> {
    reference: OwnerReference,
    state: PhantomData<fn() -> State>,
}

// === impl OwnerBuilder ===

impl OwnerBuilder<NoObject> {
    pub(super) fn new() -> Self {
        Self { reference: OwnerReference::default(), state: PhantomData }
    }

    /// The group and version of the owner, and its kind.
    pub fn object(mut self, api_version: impl Into<String>, kind: impl Into<String>) -> OwnerBuilder<NoName> {
        self.reference.api_version = api_version.into();
        self.reference.kind = kind.into();
        self.next()
    }
}

impl OwnerBuilder<NoName> {
    /// The name of the owner.
    pub fn name(mut self, name: impl Into<String>) -> OwnerBuilder<NoUid> {
        self.reference.name = name.into();
        self.next()
    }
}

impl OwnerBuilder<NoUid> {
    /// The UID of the owner.
    pub fn uid(mut self, uid: impl Into<String>) -> OwnerBuilder<WithOwner> {
        self.reference.uid = uid.into();
        self.next()
    }
}

impl OwnerBuilder<WithOwner> {
    /// The owner is the one that manages the object. At most one owner is.
    pub fn controller(mut self) -> Self {
        self.reference.controller = Some(true);
        self
    }

    /// The owner, when deleted in the foreground, waits until the object is gone.
    pub fn block_owner_deletion(mut self) -> Self {
        self.reference.block_owner_deletion = Some(true);
        self
    }
}

impl<State> OwnerBuilder<State> {
    fn next<Next>(self) -> OwnerBuilder<Next> {
        OwnerBuilder { reference: self.reference, state: PhantomData }
    }
}

impl<State: HasOwner> OwnerBuilder<State> {
    pub(super) fn into_reference(self) -> OwnerReference {
        self.reference
    }
}
