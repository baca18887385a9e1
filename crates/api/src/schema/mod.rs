//! The schema table, and what is generated from it.
//!
//! Every type is declared once, with its documentation, its defaults and its merge behaviour, next to the Rust
//! struct. The rest of the crate, and of the workspace, reads the table instead of knowing fields by name.

mod declare;
mod table;
mod wire;

pub use table::{Choice, Described, Field, ListType, Package, PatchRule, Shape, TypeName, TypeSchema, Union};

pub(crate) use declare::{declare_choice, declare_type};
pub(crate) use wire::{null_is_absent, write_field};
