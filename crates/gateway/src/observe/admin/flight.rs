//! `GET /debug/flight`: what was decided about the last requests, as a file for `evenkeel replay` (FR-2).

use std::time::Duration;

use axum::extract::{RawQuery, State as Extract};
use axum::response::{IntoResponse, Response};
use evenkeel_engine::digest::Query;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_TYPE};
use tokio::sync::Semaphore;

use super::pages::AdminState;
use crate::flight::dump_of;

pub(super) const PATH: &str = "/debug/flight";

/// The seconds of a dump if the query does not say how many.
const SECONDS_DEFAULT: u64 = 120;
const USAGE: &str = "use ?seconds=120, and with several services &service=NAME";

/// One dump at a time: it copies all that is recorded.
static TURN: Semaphore = Semaphore::const_new(1);

pub(super) async fn dump(Extract(state): Extract<AdminState>, RawQuery(query): RawQuery) -> Response {
    let refused = |what: &str| (StatusCode::BAD_REQUEST, format!("{what}; {USAGE}\n")).into_response();
    let (mut seconds, mut service) = (SECONDS_DEFAULT, None);
    for (name, value) in Query::new(query.as_deref().unwrap_or_default()).pairs() {
        match &*name {
            "seconds" => match value.parse() {
                Ok(number) => seconds = number,
                Err(_) => return refused("seconds is not a number"),
            },
            "service" => service = Some(value.into_owned()),
            _ => return refused(&format!("unknown parameter {name:?}")),
        }
    }
    let in_effect = state.admin().settings.get();
    let flow = match &service {
        None if in_effect.has_services() => return refused("the gateway has several services"),
        None => state.admin().flow.clone(),
        Some(name) => match in_effect.service(name) {
            Some(one) => one.flow.clone(),
            None => return (StatusCode::NOT_FOUND, "there is no service of that name\n").into_response(),
        },
    };
    let _turn = TURN.acquire().await;
    let dumped = tokio::task::spawn_blocking(move || {
        let last = Duration::from_secs(seconds);
        dump_of(&flow, last, "asked for by /debug/flight", &in_effect.config).map(|flight| flight.to_bytes())
    });
    match dumped.await {
        Ok(Some(bytes)) => {
            let headers = [
                (CONTENT_TYPE, "application/octet-stream"),
                (CACHE_CONTROL, "no-store"),
                (CONTENT_DISPOSITION, "attachment; filename=\"incident.ekf\""),
            ];
            (headers, bytes).into_response()
        }
        _ => {
            let text = "nothing is recorded; set `flightRecorder.bytes`, which is 33554432 by default\n";
            (StatusCode::NOT_FOUND, text).into_response()
        }
    }
}
