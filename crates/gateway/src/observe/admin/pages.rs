//! The pages of the admin endpoint.

use std::sync::Arc;

use axum::extract::{RawQuery, State as Extract};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::Admin;
use crate::observe::Phase;

/// What all pages share.
#[derive(Debug, Clone)]
pub(super) struct State(Arc<Shown>);

#[derive(Debug)]
struct Shown {
    admin: Admin,
    registry: Registry,
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// === impl State ===

impl State {
    pub(super) fn admin(&self) -> &Admin {
        &self.0.admin
    }

    pub(super) fn new(admin: Admin) -> Self {
        let mut registry = Registry::default();
        admin.flow.register_metrics(&mut registry);
        admin.metrics.register(&mut registry);
        Self(Arc::new(Shown { admin, registry }))
    }
}

pub(super) async fn metrics(Extract(state): Extract<State>) -> Response {
    let mut page = String::new();
    match text::encode(&mut page, &state.0.registry) {
        Ok(()) => ([(CONTENT_TYPE, OPEN_METRICS)], page).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n").into_response(),
    }
}

/// The gateway is alive if it responds.
pub(super) async fn alive(RawQuery(query): RawQuery) -> Response {
    health(query.as_deref(), "ping", Ok("ok"), "")
}

pub(super) async fn ready(Extract(state): Extract<State>, RawQuery(query): RawQuery) -> Response {
    let verdict = match state.0.admin.readiness.phase() {
        Phase::Ready => Ok("ok"),
        Phase::Starting => Err("it is not listening yet"),
        Phase::Draining => Err("it is shutting down"),
    };
    // The gateway serves with a copy of the objects as well as with the objects themselves.
    let objects = match state.0.admin.readiness.objects_stale() {
        Some(why) => format!("[+]objects ok, but they may be out of date: {why}\n"),
        None => "[+]objects ok\n".to_owned(),
    };
    health(query.as_deref(), "phase", verdict, &objects)
}

pub(super) async fn config(Extract(state): Extract<State>) -> Response {
    let config = Arc::clone(&state.0.admin.config.borrow());
    ([(CONTENT_TYPE, "application/yaml")], config.to_yaml()).into_response()
}

pub(super) async fn not_found() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "there is no such page; / lists those that there are\n")
}

/// A health check in the form that those of Kubernetes have. `others` are the lines of further checks that have passed.
fn health(query: Option<&str>, check: &str, verdict: Result<&str, &str>, others: &str) -> Response {
    let is_verbose = query.is_some_and(|query| {
        query.split('&').any(|parameter| parameter == "verbose" || parameter.starts_with("verbose="))
    });
    let (status, page) = match verdict {
        Ok(_) if is_verbose => (StatusCode::OK, format!("[+]{check} ok\n{others}check passed\n")),
        Ok(word) => (StatusCode::OK, word.to_owned()),
        Err(reason) => (StatusCode::SERVICE_UNAVAILABLE, format!("[-]{check} failed: {reason}\ncheck failed\n")),
    };
    (status, [(CACHE_CONTROL, "no-store")], page).into_response()
}
