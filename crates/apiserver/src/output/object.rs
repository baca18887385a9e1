//! One object, in the shape that the client wants.

use bytes::Bytes;
use http::StatusCode;

use super::format::json_line;
use super::partial::PartialMetadata;
use super::table::{Table, TableStyle};
use super::{Columns, Format, Shown, View, protobuf};
use crate::Failure;
use crate::negotiate::{SPOKEN, Shape};
use crate::response_data::ResponseData;

/// The response to a get or a write: one object.
pub(crate) fn object<S: Columns>(
    status: StatusCode,
    shown: Shown<'_, S>,
    view: &View<'_>,
) -> Result<ResponseData, Failure> {
    Ok(match view.wanted.format {
        Format::Text(format) => ResponseData::document(status, line(shown, view)?, format),
        Format::Protobuf => ResponseData::protobuf(status, message(shown, view)?),
    })
}

fn line<S: Columns>(shown: Shown<'_, S>, view: &View<'_>) -> Result<Bytes, Failure> {
    match view.wanted.shape {
        Shape::Plain => Ok(shown.encoded(view.version).line()),
        Shape::Table(version) => {
            let style = TableStyle::new(version, view)?;
            Ok(json_line(&Table::of_object(shown, style, view.now)))
        }
        Shape::PartialMetadata(version) => Ok(json_line(&PartialMetadata::new(&shown.object.metadata, version))),
        Shape::PartialMetadataList(_) => Err(no_list::<S>()),
    }
}

fn message<S: Columns>(shown: Shown<'_, S>, view: &View<'_>) -> Result<Vec<u8>, Failure> {
    match view.wanted.shape {
        Shape::Plain => Ok(shown.object.in_version(view.version).to_protobuf()),
        Shape::PartialMetadata(version) => Ok(protobuf::partial(&shown.object.metadata, version)),
        Shape::PartialMetadataList(_) => Err(no_list::<S>()),
        Shape::Table(_) => Err(Failure::only_accepted(SPOKEN)),
    }
}

fn no_list<S: Columns>() -> Failure {
    Failure::wrong_shape(format!(
        "you requested PartialObjectMetadataList, but the requested object is not a list (*flowcontrol.{})",
        S::KIND
    ))
}
