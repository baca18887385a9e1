//! The options in the query of a request and in the body of a deletion (API-76 to API-86).

mod delete;
mod list;
mod write;

use std::borrow::Cow;
use std::time::Duration;

use evenkeel_engine::digest::{Query, parse_duration};

use crate::failure::Failure;

pub(crate) use delete::{DeleteOptions, Propagation};
pub(crate) use list::{Initial, ListOptions, Moment, Selection, Start, WatchOptions};
pub(crate) use write::{Persistence, WriteKind, WriteOptions};

/// How long the request may take, if it says so (API-77).
pub(crate) fn timeout(query: Query<'_>) -> Result<Option<Duration>, Failure> {
    let Some(text) = query.first("timeout").filter(|text| !text.is_empty()) else { return Ok(None) };
    parse_duration(&text)
        .map(|timeout| Some(timeout).filter(|timeout| !timeout.is_zero()))
        .map_err(|problem| Failure::bad_request(format!("invalid timeout specified in the request URL - {problem}")))
}

/// The first value of a parameter that is not empty.
fn non_empty<'a>(query: Query<'a>, name: &str) -> Option<Cow<'a, str>> {
    query.first(name).filter(|value| !value.is_empty())
}
