//! The dashboard on the admin endpoint: the page, and the stream that it shows.

use axum::body::Body;
use axum::extract::State as Extract;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use super::pages::AdminState;
use crate::observe::dashboard::{Asset, page};

pub(super) async fn html(headers: HeaderMap) -> Response {
    page(Asset::Html, &headers)
}

pub(super) async fn css(headers: HeaderMap) -> Response {
    page(Asset::Css, &headers)
}

pub(super) async fn script(headers: HeaderMap) -> Response {
    page(Asset::Script, &headers)
}

/// The frames, as server-sent events.
pub(super) async fn frames(Extract(state): Extract<AdminState>) -> Response {
    match state.admin().frames.watch() {
        Ok(viewer) => {
            ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], Body::new(viewer)).into_response()
        }
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, [(RETRY_AFTER, "10")], format!("{error}\n")).into_response(),
    }
}
