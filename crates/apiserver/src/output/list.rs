//! A list of objects, in the shape that the client wants.

use bytes::Bytes;
use evenkeel_api::Version;
use http::StatusCode;
use serde::Serialize;

use super::format::{json_line, write_json};
use super::partial::PartialMetadataList;
use super::table::{Table, TableStyle};
use super::{Columns, Encoded, Format, Shown, View, protobuf};
use crate::Failure;
use crate::negotiate::{SPOKEN, Shape};
use crate::response_data::ResponseData;

/// The metadata of a list. Empty members are left out.
#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListMeta<'a> {
    /// The state that the list shows.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) resource_version: &'a str,
    /// Where the next page starts, if there is one.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub(crate) continue_token: Option<&'a str>,
    /// How many objects are left, if that is known (API-149).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remaining_item_count: Option<u64>,
}

/// The response to a list, or to the deletion of a collection.
pub(crate) fn list<S: Columns>(
    metadata: &ListMeta<'_>,
    items: &[Shown<'_, S>],
    view: &View<'_>,
) -> Result<ResponseData, Failure> {
    Ok(match view.wanted.format {
        Format::Text(format) => ResponseData::document(StatusCode::OK, line(metadata, items, view)?, format),
        Format::Protobuf => ResponseData::protobuf(StatusCode::OK, message(metadata, items, view)?),
    })
}

fn line<S: Columns>(metadata: &ListMeta<'_>, items: &[Shown<'_, S>], view: &View<'_>) -> Result<Bytes, Failure> {
    match view.wanted.shape {
        Shape::Plain => Ok(plain(metadata, items, view.version)),
        Shape::Table(version) => {
            let style = TableStyle::new(version, view)?;
            Ok(json_line(&Table::of_list(*metadata, items, style, view.now)))
        }
        Shape::PartialMetadataList(version) => Ok(json_line(&PartialMetadataList::new(metadata, items, version))),
        Shape::PartialMetadata(_) => Err(no_object::<S>()),
    }
}

fn message<S: Columns>(metadata: &ListMeta<'_>, items: &[Shown<'_, S>], view: &View<'_>) -> Result<Vec<u8>, Failure> {
    match view.wanted.shape {
        Shape::Plain => Ok(protobuf::list(metadata, items, view.version)),
        Shape::PartialMetadataList(version) => {
            Ok(protobuf::partial_list(&PartialMetadataList::new(metadata, items, version), version))
        }
        Shape::PartialMetadata(_) => Err(no_object::<S>()),
        Shape::Table(_) => Err(Failure::only_accepted(SPOKEN)),
    }
}

fn no_object<S: Columns>() -> Failure {
    Failure::wrong_shape(format!(
        "you requested PartialObjectMetadata, but the requested object is a list (*flowcontrol.{}List)",
        S::KIND
    ))
}

/// The list of whole objects. Cached encodings of items are only copied.
fn plain<S: Columns>(metadata: &ListMeta<'_>, items: &[Shown<'_, S>], version: Version) -> Bytes {
    let items: Vec<Encoded> = items.iter().map(|shown| shown.encoded(version)).collect();
    let length: usize = items.iter().map(|item| item.members().len() + 2).sum();
    let mut text = Vec::with_capacity(256 + metadata.continue_token.map_or(0, str::len) + length);
    let (kind, api_version) = (S::KIND, version.api_version());
    text.extend_from_slice(format!(r#"{{"kind":"{kind}List","apiVersion":"{api_version}","metadata":"#).as_bytes());
    write_json(&mut text, metadata);
    text.extend_from_slice(br#","items":["#);
    for (index, item) in items.iter().enumerate() {
        text.extend_from_slice(if index == 0 { b"{" } else { b",{" });
        text.extend_from_slice(item.members());
    }
    text.extend_from_slice(b"]}\n");
    text.into()
}

// === impl ListMeta ===

impl<'a> ListMeta<'a> {
    /// A list without further pages.
    pub(crate) fn at(resource_version: &'a str) -> Self {
        Self { resource_version, ..Self::default() }
    }
}
