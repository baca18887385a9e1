//! The types of `meta/v1` that the objects are made of.

mod list_meta;
mod managed_fields;
mod object_meta;
mod owner_reference;
mod status;
mod time;

pub use list_meta::ListMeta;
pub use managed_fields::{FieldSet, ManagedFieldsEntry};
pub use object_meta::ObjectMeta;
pub use owner_reference::OwnerReference;
pub use status::{Outcome, Status, StatusCause, StatusDetails};
pub use time::{InvalidTime, Time};
