//! The bodies of responses: objects, lists, tables, watch events and statuses, in the form that the client wants.
//!
//! Texts are written as one line of JSON first ([`Encoded`] keeps that of an object), and only for the few clients that
//! want another layout or YAML ([`TextFormat`]) written again. Protobuf is written from the objects themselves.

mod age;
mod columns;
mod encoded;
mod event;
mod format;
mod include_object;
mod indent;
mod list;
mod object;
mod partial;
mod protobuf;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod view;
mod yaml;

pub(crate) use columns::Columns;
pub(crate) use encoded::{Encoded, Shown};
pub(crate) use event::{Bookmark, Change, EventWriter};
pub(crate) use format::{Format, Layout, Media, TextFormat};
pub(crate) use list::{ListMeta, list};
pub(crate) use object::object;
pub(crate) use status::{deleted, failure};
pub(crate) use view::View;
pub use yaml::to_yaml;

#[cfg(test)]
pub(crate) use tests::{any_json, read_yaml};
