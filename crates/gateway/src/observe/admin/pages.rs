//! The pages of the admin endpoint.

use std::sync::Arc;

use axum::extract::{RawQuery, State as Extract};
use axum::response::{IntoResponse, Response};
use evenkeel::debug;
use evenkeel::metrics::{MetricsPage, register_process};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use prometheus_client::registry::Registry;

use super::Admin;
use crate::objects::SourceStatus;
use crate::observe::Phase;
use crate::observe::metrics::register_source;

/// What all pages share.
#[derive(Debug, Clone)]
pub(super) struct AdminState(Arc<Shown>);

#[derive(Debug)]
struct Shown {
    admin: Admin,
    registry: Registry,
}

/// How many flows of a level are shown if nobody says how many, and at most.
const FLOWS_DEFAULT: usize = 20;
const FLOWS_MAX: usize = 64;

// === impl AdminState ===

impl AdminState {
    pub(super) fn admin(&self) -> &Admin {
        &self.0.admin
    }

    pub(super) fn new(admin: Admin) -> Self {
        let mut registry = Registry::default();
        let registered = admin.flow.register_metrics(&mut registry);
        debug_assert!(registered.is_ok(), "the registry is new");
        admin.metrics.register(&mut registry);
        register_source(&admin.readiness, &mut registry);
        register_process(&mut registry);
        Self(Arc::new(Shown { admin, registry }))
    }
}

pub(super) async fn metrics(Extract(state): Extract<AdminState>, request: HeaderMap) -> Response {
    match MetricsPage::new(&state.0.registry, &request) {
        Ok(page) => ([(CONTENT_TYPE, page.content_type)], page.text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n").into_response(),
    }
}

/// What every level is doing.
pub(super) async fn status(Extract(state): Extract<AdminState>) -> Response {
    let Admin { flow, readiness, metrics, settings, .. } = &state.0.admin;
    let phase = match readiness.phase() {
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Draining => "draining",
    };
    json(&serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "phase": phase,
        "objectsStale": readiness.objects_stale(),
        "storeUnavailable": readiness.source().and_then(SourceStatus::store_problem),
        "concurrency": settings.get().config.concurrency,
        "connections": metrics.connections(),
        "levels": flow.status(),
        "upstreams": metrics.upstream_status(),
    }))
}

/// Who uses the levels, and who delays whom: so many flows of each level as `limit` says.
pub(super) async fn flows(Extract(state): Extract<AdminState>, RawQuery(query): RawQuery) -> Response {
    let limit = query.as_deref().unwrap_or_default().split('&').find_map(|parameter| parameter.strip_prefix("limit="));
    match limit.map_or(Ok(FLOWS_DEFAULT), str::parse::<usize>) {
        Ok(limit) => json(&serde_json::json!({ "levels": state.0.admin.flow.flows(limit.min(FLOWS_MAX)) })),
        Err(_) => (StatusCode::BAD_REQUEST, "limit is not a number\n").into_response(),
    }
}

/// The dumps that there are.
pub(super) async fn dumps() -> String {
    [
        ("dump_priority_levels", "what every priority level has: queues, requests that wait, requests that run"),
        ("dump_queues", "what every queue has"),
        ("dump_requests", "every request that waits or runs; with ?includeRequestDetails=1, also what it asks for"),
    ]
    .map(|(dump, content)| format!("{}/{dump}\n    {content}\n", debug::PATH_PREFIX))
    .concat()
}

fn json(value: &serde_json::Value) -> Response {
    ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], value.to_string()).into_response()
}

/// The gateway is alive if it responds.
pub(super) async fn alive(RawQuery(query): RawQuery) -> Response {
    health(query.as_deref(), "ping", Ok("ok"), "")
}

pub(super) async fn ready(Extract(state): Extract<AdminState>, RawQuery(query): RawQuery) -> Response {
    let verdict = match state.0.admin.readiness.phase() {
        Phase::Ready => Ok("ok"),
        Phase::Starting => Err("it is not listening yet"),
        Phase::Draining => Err("it is shutting down"),
    };
    // The gateway serves with a copy of the objects as well as with the objects themselves.
    let readiness = &state.0.admin.readiness;
    let mut others = match readiness.objects_stale() {
        Some(why) => format!("[+]objects ok, but they may be out of date: {why}\n"),
        None => "[+]objects ok\n".to_owned(),
    };
    // A gateway forwards requests without a store, too.
    match readiness.source().map(SourceStatus::store_problem) {
        Some(Some(why)) => others += &format!("[-]store unavailable, which does not fail this check: {why}\n"),
        Some(None) => others += "[+]store ok\n",
        None => {}
    }
    health(query.as_deref(), "phase", verdict, &others)
}

pub(super) async fn config(Extract(state): Extract<AdminState>) -> Response {
    let config = state.0.admin.settings.get().config;
    ([(CONTENT_TYPE, "application/yaml")], config.to_yaml()).into_response()
}

pub(super) async fn not_found() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "there is no such page; see / for the dashboard with links to all pages\n")
}

/// A health check in the form that those of Kubernetes have. `others` are the lines of further checks, which decide nothing.
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
