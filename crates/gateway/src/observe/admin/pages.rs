//! The pages of the admin endpoint.

use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request, State as Extract};
use axum::response::{IntoResponse, Response};
use evenkeel::debug;
use evenkeel::fleet::Footing;
use evenkeel::metrics::{MetricsPage, RegisterError, register_labelled, register_process};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use prometheus_client::registry::Registry;
use tower_service::Service;

use super::Admin;
use crate::objects::SourceStatus;
use crate::observe::dashboard::now_ms;
use crate::observe::frame::{Fleet, Limit};
use crate::observe::metrics::register_source;
use crate::observe::{Phase, ServiceFlow};

/// The state that all pages share.
#[derive(Debug, Clone)]
pub(super) struct AdminState(Arc<Shown>);

#[derive(Debug)]
struct Shown {
    admin: Admin,
    registry: Registry,
}

/// How many flows of a level are shown if the query does not say how many, and the most.
const FLOWS_DEFAULT: usize = 20;
const FLOWS_MAX: usize = 64;

// === impl AdminState ===

impl AdminState {
    pub(super) fn admin(&self) -> &Admin {
        &self.0.admin
    }

    pub(super) fn new(admin: Admin) -> Self {
        let registry = registry(&admin, |registry| admin.flow.register_metrics(registry));
        Self(Arc::new(Shown { admin, registry }))
    }
}

/// The registry of all metrics, with those of the flow controls that `register` adds.
fn registry(admin: &Admin, register: impl FnOnce(&mut Registry) -> Result<(), RegisterError>) -> Registry {
    let mut registry = Registry::default();
    let registered = register(&mut registry);
    debug_assert!(registered.is_ok(), "the registry is new");
    admin.metrics.register(&mut registry);
    register_source(&admin.readiness, &mut registry);
    register_process(&mut registry);
    registry
}

pub(super) async fn metrics(Extract(state): Extract<AdminState>, request: HeaderMap) -> Response {
    let Shown { admin, registry: alone } = &*state.0;
    let in_effect = admin.settings.get();
    // Services come and go with the settings.
    let of_services = in_effect.has_services().then(|| {
        let named = in_effect.services.iter().filter_map(|one| Some((one.service.as_deref()?, &one.flow)));
        registry(admin, |registry| register_labelled(registry, "service", named))
    });
    match MetricsPage::new(of_services.as_ref().unwrap_or(alone), &request) {
        Ok(page) => ([(CONTENT_TYPE, page.content_type)], page.text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n").into_response(),
    }
}

/// The status of every level.
pub(super) async fn status(Extract(state): Extract<AdminState>) -> Response {
    let Admin { flow, readiness, metrics, settings, .. } = &state.0.admin;
    let phase = match readiness.phase() {
        Phase::Starting => "starting",
        Phase::Ready => "ready",
        Phase::Draining => "draining",
    };
    let limit = flow.limit_state().map(|state| Limit::new(&state, now_ms(), usize::MAX));
    let in_effect = settings.get();
    let mut status = serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "phase": phase,
        "objectsStale": readiness.objects_stale(),
        "storeUnavailable": readiness.source().and_then(SourceStatus::store_problem),
        "concurrency": limit.as_ref().map_or(in_effect.config.concurrency().most(), |limit| limit.applied),
        "limit": limit,
        "fleet": flow.fleet_state().map(|state| Fleet::new(&state, now_ms(), usize::MAX)),
        "connections": metrics.connections(),
        "levels": flow.status(),
        "upstreams": metrics.upstream_status(),
    });
    if in_effect.has_services() {
        let service = |one: &ServiceFlow| {
            let limit = one.flow.limit_state().map(|state| Limit::new(&state, now_ms(), usize::MAX));
            serde_json::json!({
                "service": one.service.as_deref(),
                "concurrency": one.flow.reading().concurrency,
                "limit": limit,
                "levels": one.flow.status(),
            })
        };
        status["levels"] = serde_json::json!([]);
        status["services"] = in_effect.services.iter().map(service).collect();
    }
    json(&status)
}

/// Who uses the levels, and who delays whom: so many flows of each level as `limit` says.
pub(super) async fn flows(Extract(state): Extract<AdminState>, RawQuery(query): RawQuery) -> Response {
    let limit = query.as_deref().unwrap_or_default().split('&').find_map(|parameter| parameter.strip_prefix("limit="));
    match limit.map_or(Ok(FLOWS_DEFAULT), str::parse::<usize>) {
        Ok(limit) => {
            let (limit, in_effect) = (limit.min(FLOWS_MAX), state.0.admin.settings.get());
            if in_effect.has_services() {
                let flows = |one: &ServiceFlow| serde_json::json!({ "service": one.service.as_deref(), "levels": one.flow.flows(limit) });
                let services: Vec<_> = in_effect.services.iter().map(flows).collect();
                return json(&serde_json::json!({ "services": services }));
            }
            json(&serde_json::json!({ "levels": state.0.admin.flow.flows(limit) }))
        }
        Err(_) => (StatusCode::BAD_REQUEST, "limit is not a number\n").into_response(),
    }
}

/// The dumps that there are.
pub(super) async fn dumps(Extract(state): Extract<AdminState>) -> String {
    let in_effect = state.0.admin.settings.get();
    let services = in_effect.services.iter().filter_map(|one| one.service.as_deref());
    let service = |service| format!("/debug/services/{service}/dump_…\n    those of the service {service}\n");
    let services: Vec<String> = services.map(service).collect();
    let dumps = [
        ("dump_priority_levels", "what every priority level has: queues, requests that wait, requests that run"),
        ("dump_queues", "what every queue has"),
        ("dump_requests", "every request that waits or runs; with ?includeRequestDetails=1, also what it asks for"),
    ]
    .map(|(dump, content)| format!("{}/{dump}\n    {content}\n", debug::PATH_PREFIX))
    .concat();
    dumps + &services.concat()
}

/// A dump of one service: the same as without services.
pub(super) async fn dump_of_service(
    Extract(state): Extract<AdminState>,
    Path((service, dump)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    mut request: Request,
) -> Response {
    let in_effect = state.0.admin.settings.get();
    let Some(one) = in_effect.service(&service) else {
        return (StatusCode::NOT_FOUND, "there is no service of that name\n").into_response();
    };
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    let Ok(uri) = format!("{}/{dump}{query}", debug::PATH_PREFIX).parse() else {
        return not_found().await.into_response();
    };
    *request.uri_mut() = uri;
    let Ok(response) = debug::router(one.flow.clone()).call(request).await;
    response
}

pub(super) fn json(value: &serde_json::Value) -> Response {
    ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")], value.to_string()).into_response()
}

/// The gateway is alive if it responds.
pub(super) async fn alive(RawQuery(query): RawQuery) -> Response {
    health(query.as_deref(), "ping", Ok("ok"), "")
}

pub(super) async fn ready(Extract(state): Extract<AdminState>, RawQuery(query): RawQuery) -> Response {
    let fleet = state.0.admin.flow.fleet_state();
    let verdict = match state.0.admin.readiness.phase() {
        // Requests that are sent here would not start.
        Phase::Ready if fleet.as_ref().is_some_and(|fleet| fleet.footing == Footing::Nothing) => {
            Err("the fleet has given it no seats; is etcd away?")
        }
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
    if let Some(fleet) = &fleet {
        others += &match fleet.footing {
            Footing::Grant => format!("[+]fleet ok: {} of {} seats\n", fleet.seats, fleet.status.seats),
            _ => format!(
                "[-]fleet cut off from etcd, which does not fail this check: {} seats of the floor\n",
                fleet.seats
            ),
        };
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

/// A health check in the form of Kubernetes. `others` are the lines of further checks, which do not change the verdict.
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
