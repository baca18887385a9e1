//! Routes that are not about objects: discovery, OpenAPI, health, and unknown paths (API-100, API-179 to API-189).

use http::Method;
use http::StatusCode;

use super::call::Call;
use super::pages;
use crate::discovery::{self, Discovery};
use crate::failure::Failure;
use crate::openapi;
use crate::response_data::ResponseData;
use crate::route::{HealthCheck, Probe, Route};

/// The response to a request for that route.
pub(super) fn respond(call: Call<'_>, route: &Route) -> Result<ResponseData, Failure> {
    match route {
        Route::NoResource => return Err(Failure::no_resource()),
        Route::NoPage | Route::Objects(_) => {
            return Ok(ResponseData::text(StatusCode::NOT_FOUND, "404 page not found\n"));
        }
        _ => {}
    }
    if call.parts.method != Method::GET {
        return Err(Failure::no_method());
    }
    let headers = &call.parts.headers;
    let discovered = |what| discovery::response(what, headers, call.query.first("pretty").as_deref());
    match route {
        Route::Groups => discovered(Discovery::Groups),
        Route::CoreVersions => discovered(Discovery::Core),
        Route::CoreResources => discovered(Discovery::CoreResources),
        Route::Group => discovered(Discovery::Group),
        Route::Resources(version) => discovered(Discovery::Resources(*version)),
        Route::Version => Ok(discovery::version_response()),
        Route::OpenapiIndex => openapi::index_response(headers),
        Route::Openapi(version) => openapi::v3_response(*version, call.query.first("hash").as_deref(), headers),
        Route::OpenapiV2 => openapi::v2_response(headers),
        Route::Health(probe, None) => Ok(health(*probe, call)),
        Route::Health(_, Some(check)) => Ok(health_check(*check, call)),
        Route::Index => pages::index(call),
        Route::Metrics => pages::metrics(call),
        Route::Dump(dump) => Ok(pages::dump(*dump, call)),
        Route::Objects(_) | Route::Review(_) | Route::NoResource | Route::NoPage => Err(Failure::no_resource()),
    }
}

/// Health of the server (API-184), in the format of a kube-apiserver: `verbose` lists the checks, and `exclude` leaves one
/// out.
fn health(probe: Probe, call: Call<'_>) -> ResponseData {
    let excluded: Vec<_> =
        call.query.pairs().filter(|(name, _)| name == "exclude").map(|(_, value)| value.into_owned()).collect();
    let is_excluded = |check: HealthCheck| excluded.iter().any(|name| name == check.name());
    let (mut text, mut is_healthy) = (String::new(), true);
    for check in probe.checks() {
        let name = check.name();
        if is_excluded(*check) {
            text += &format!("[+]{name} excluded: ok\n");
            continue;
        }
        match problem(*check, call) {
            None => text += &format!("[+]{name} ok\n"),
            Some(problem) => {
                is_healthy = false;
                text += &format!("[-]{name} failed: {problem}\n");
            }
        }
    }
    let is_known = |name: &&String| probe.checks().iter().any(|check| check.name() == **name);
    let unknown: Vec<_> = excluded.iter().filter(|name| !is_known(name)).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        text += &format!("warn: some health checks cannot be excluded: no matches for {}\n", unknown.join(","));
    }
    let name = probe.name();
    if !is_healthy {
        return ResponseData::text(StatusCode::INTERNAL_SERVER_ERROR, text + &format!("{name} check failed\n"));
    }
    match call.query.first("verbose") {
        None => ResponseData::text(StatusCode::OK, "ok"),
        Some(_) => ResponseData::text(StatusCode::OK, text + &format!("{name} check passed\n")),
    }
}

/// One of the checks.
fn health_check(check: HealthCheck, call: Call<'_>) -> ResponseData {
    match problem(check, call) {
        None => ResponseData::text(StatusCode::OK, "ok"),
        Some(problem) => {
            ResponseData::text(StatusCode::INTERNAL_SERVER_ERROR, format!("internal server error: {problem}\n"))
        }
    }
}

/// The fault, if there is one.
fn problem(check: HealthCheck, call: Call<'_>) -> Option<String> {
    match check {
        HealthCheck::Ping => None,
        HealthCheck::Store => call.shared.schemas.store().problem(),
    }
}
