//! What is sent back: objects, lists, tables, watch events and statuses, in the form that the client wants.
//!
//! Everything is written as one line of JSON first ([`Encoded`] keeps that of an object), and only for the few clients
//! that want something else ([`Format`]) written again.

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
mod status;
mod table;
#[cfg(test)]
mod tests;
mod view;
mod yaml;

pub(crate) use columns::Columns;
pub(crate) use encoded::{Encoded, Shown};
pub(crate) use event::{Bookmark, Change, EventWriter};
pub(crate) use format::{Format, Layout, Media};
pub(crate) use list::{ListMeta, list};
pub(crate) use object::object;
pub(crate) use status::{deleted, failure};
pub(crate) use view::View;

#[cfg(test)]
pub(crate) use tests::{any_json, read_yaml};
