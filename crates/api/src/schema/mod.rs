//! The schema table, and what is generated from it.
//!
//! Every type is declared once, with its documentation, its defaults and its merge behaviour, next to the Rust
//! struct. The rest of the crate, and of the workspace, reads the table instead of knowing fields by name.
//!
//! The generators below make a new value each time they are called; a server makes each document once and keeps it.

mod declare;
mod json_schema;
mod meta_types;
mod object_types;
mod openapi;
mod reachable;
mod reference;
mod table;
mod wire;

pub use json_schema::{json_schema, json_schema_of_all};
pub use meta_types::{
    DELETE_OPTIONS, PARTIAL_OBJECT_METADATA, PARTIAL_OBJECT_METADATA_LIST, PARTIAL_OBJECT_METADATA_LIST_V1BETA1, STATUS,
};
pub use object_types::{list_type, object_type};
pub use openapi::{openapi_v2, openapi_v3};
pub use reference::{markdown_of, markdown_reference};
pub use table::{
    Choice, Described, Field, ListType, Package, PatchRule, Presence, SetBy, Shape, TypeName, TypeSchema, Union,
};

pub(crate) use declare::{declare_choice, declare_type};
pub(crate) use meta_types::{API_VERSION, KIND};
pub(crate) use wire::{null_is_absent, write_field};
