//! Routes that are not about objects: discovery, OpenAPI, health, and unknown paths (API-100, API-179 to API-189).

use http::Method;
use http::StatusCode;

use super::call::Call;
use super::pages;
use crate::discovery::{self, Discovery};
use crate::failure::Failure;
use crate::openapi;
use crate::response_data::ResponseData;
use crate::route::{Probe, Route};

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
        Route::Health(probe) => Ok(health(*probe, call)),
        Route::Index => pages::index(call),
        Route::Metrics => pages::metrics(call),
        Route::Dump(dump) => Ok(pages::dump(*dump, call)),
        Route::Objects(_) | Route::Review(_) | Route::NoResource | Route::NoPage => Err(Failure::no_resource()),
    }
}

/// Health of the server (API-184). With `verbose`, each check.
fn health(probe: Probe, call: Call<'_>) -> ResponseData {
    // A server without its store is alive, but not ready: the store recovers or is reached again by itself, and a restart
    // would not help.
    let problem = match probe {
        Probe::Livez => None,
        Probe::Healthz | Probe::Readyz => call.shared.schemas.store().problem(),
    };
    let name = match probe {
        Probe::Healthz => "healthz",
        Probe::Livez => "livez",
        Probe::Readyz => "readyz",
    };
    let (status, outcome) = match &problem {
        None => (StatusCode::OK, "passed"),
        Some(_) => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
    };
    if problem.is_none() && call.query.first("verbose").is_none() {
        return ResponseData::text(status, "ok");
    }
    let mut text = String::from("[+]ping ok\n");
    match problem {
        Some(problem) => text += &format!("[-]store failed: {problem}\n"),
        None if probe != Probe::Livez => text += "[+]store ok\n",
        None => {}
    }
    text += &format!("{name} check {outcome}\n");
    ResponseData::text(status, text)
}
