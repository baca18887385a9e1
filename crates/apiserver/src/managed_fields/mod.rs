//! The owners of fields: `managedFields`, and server-side apply (API-123 to API-144).
//!
//! All functions are pure: the stored object, the request and the time come in, the new object comes out.
//!
//! | request | call |
//! |---|---|
//! | POST | [`created`] |
//! | PUT, and patches other than apply | [`updated`], then [`differs`] |
//! | apply patch | [`ApplyBody::parse`], [`apply`], then [`differs`] if the object exists |
//!
//! Which fields there are, and what of them is owned as a whole, comes from the schema table (`ownership`). Two states
//! of an object are compared field by field (`compare`) in every version that an owner has named its fields in.

mod ancient;
mod apply;
mod apply_body;
mod compare;
mod conflict;
mod difference;
mod differs;
mod element;
mod field_set;
#[cfg(test)]
mod field_set_tests;
mod fields_v1;
mod last_applied;
mod merge;
mod owned;
mod owned_parts;
mod owner;
mod prune;
mod schema_check;
mod translate;
mod update;
mod view;
mod writer;

pub use apply::{ApplyRequest, OnConflict, apply};
pub use apply_body::ApplyBody;
pub use differs::differs;
pub use update::{SentManagers, created, updated};
pub use writer::{WriteTarget, Writer};
