//! A `Status`: why a request failed, or that an object is gone.

use evenkeel_api::meta::{Outcome, Status, StatusDetails};
use evenkeel_api::{GROUP, Kind};
use http::StatusCode;
use http::header::RETRY_AFTER;
use serde::Serialize;

use super::format::json_line;
use super::{Format, protobuf};
use crate::Failure;
use crate::response_data::ResponseData;

/// The response to a request that failed (API-98). The time of a retry is in the body and in a header, which clients read.
pub(crate) fn failure(failure: &Failure, format: Format) -> ResponseData {
    let response = status(failure.status, failure, format);
    match failure.details.as_ref().and_then(|details| details.retry_after_seconds) {
        Some(seconds) => response.with(RETRY_AFTER, seconds.into()),
        None => response,
    }
}

/// The response to the deletion of an object that is gone (API-66).
pub(crate) fn deleted(kind: Kind, name: &str, uid: &str, format: Format) -> ResponseData {
    let details = StatusDetails {
        name: name.to_owned(),
        group: GROUP.into(),
        kind: kind.resource().into(),
        uid: uid.to_owned(),
        ..StatusDetails::default()
    };
    let success = Status { outcome: Outcome::Success, details: Some(&details), ..Status::default() };
    status(StatusCode::OK, &success, format)
}

fn status(code: StatusCode, status: &impl Serialize, format: Format) -> ResponseData {
    match format {
        Format::Text(format) => ResponseData::document(code, json_line(status), format),
        Format::Protobuf => ResponseData::protobuf(code, protobuf::status(status)),
    }
}
