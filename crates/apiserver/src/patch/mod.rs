//! Patches other than apply: JSON patch, merge patch and strategic merge patch (API-115 to API-122).
//!
//! Each takes the stored object as the JSON of the version in the URL, managed fields included, and gives the JSON of
//! the patched one as a [`PatchedDocument`]. [`PatchedDocument::decode`] makes an object of that, which goes through
//! update like the body of a PUT.
//!
//! ```
//! use evenkeel_api::{Version, v1::{FlowSchema, FlowSchemaSpec}};
//! use evenkeel_apiserver::patch::{FieldValidation, merge_patch};
//!
//! let mut schema = FlowSchema::default();
//! schema.metadata.name = "batch".into();
//! let document = serde_json::to_value(schema.in_version(Version::V1beta3)).expect("an object is always written");
//! let patched = merge_patch(document, br#"{"spec": {"matchingPrecedence": 7, "priority": 1}}"#)?;
//! let patched = patched.decode::<FlowSchemaSpec>(Version::V1beta3, FieldValidation::Warn)?;
//! assert_eq!(patched.object.spec.matching_precedence, 7);
//! assert_eq!(patched.warnings, [r#"unknown field "spec.priority""#]);
//! # Ok::<(), evenkeel_apiserver::Failure>(())
//! ```

mod document;
mod field_validation;
mod json;
mod json_patch;
mod merge_patch;
mod patched;
mod pointer;
mod printed;
mod strategic;

pub use field_validation::FieldValidation;
pub use json_patch::json_patch;
pub use merge_patch::merge_patch;
pub use patched::{Patched, PatchedDocument};
pub use strategic::strategic_merge_patch;

pub(crate) use json::json_of;
pub(crate) use printed::printed;
