//! `OwnerReference`: the object that another one depends on.

use crate::schema::{TypeName, declare_type};

declare_type! {
    /// Names an object that this one depends on.
    pub struct OwnerReference(TypeName::Fixed("OwnerReference"), Meta) {
        /// The group and version of the owner.
        api_version "apiVersion" = 5: String [required always_written],
        /// The kind of the owner.
        kind "kind" = 1: String [required always_written],
        /// The name of the owner.
        name "name" = 3: String [required always_written],
        /// The UID of the owner.
        uid "uid" = 4: String [required always_written],
        /// Whether the owner manages this object. At most one owner does.
        controller "controller" = 6: Option<bool> [],
        /// Whether the owner, when deleted in the foreground, waits until this object is gone.
        block_owner_deletion "blockOwnerDeletion" = 7: Option<bool> [],
    }
}
