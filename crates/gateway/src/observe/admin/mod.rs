//! The admin endpoint: the dashboard, metrics, health checks, dumps and settings, on a listener of its own.
//!
//! It is for this machine only unless the settings say otherwise, and then it needs a token ([`AdminToken`]): it names users and
//! paths. Nothing can be changed through it.

mod dashboard;
mod explain;
mod flight;
mod hosts;
mod in_effect;
mod pages;
mod server;
mod shadow;
mod slots;
mod token;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use axum::routing::get;
use axum::{Router, middleware};
use evenkeel::{FlowControl, debug};
use http::header::{REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderName, HeaderValue};

use crate::observe::Readiness;
use crate::observe::dashboard::Frames;
use crate::observe::metrics::GatewayMetrics;

pub use in_effect::{InEffect, SettingsInEffect};
pub use server::serve;
pub(crate) use server::serve_on;
pub use token::{AdminToken, AdminTokenError, TOKEN_VARIABLE};

/// The parts of a gateway that the admin endpoint shows.
///
/// Not `#[non_exhaustive]`: code that runs the admin endpoint makes it.
#[derive(Debug, Clone)]
pub struct Admin {
    /// The flow control whose metrics and dumps are shown.
    pub flow: FlowControl,
    /// The gateway's own metrics.
    pub metrics: GatewayMetrics,
    /// Whether the gateway wants more requests.
    pub readiness: Readiness,
    /// The settings in effect.
    pub settings: SettingsInEffect,
    /// The frames of the dashboard.
    pub frames: Frames,
    /// The token that clients have to send, if one is needed.
    pub token: Option<AdminToken>,
}

// === impl Admin ===

impl Admin {
    /// All pages.
    pub fn router(self) -> Router {
        let flow = self.flow.clone();
        let hosts = hosts::Hosts::new(&self.settings.get().config.admin.hosts);
        let checked = self.token.clone().map(|token| (token, self.metrics.clone()));
        let pages = Router::new()
            .route("/", get(dashboard::html))
            .route("/dashboard.css", get(dashboard::css))
            .route("/dashboard.js", get(dashboard::script))
            .route("/debug/frames", get(dashboard::frames))
            .route("/metrics", get(pages::metrics))
            .route("/healthz", get(pages::alive))
            .route("/livez", get(pages::alive))
            .route("/readyz", get(pages::ready))
            .route("/config", get(pages::config))
            .route(explain::PATH, get(explain::explain))
            .route("/debug/status", get(pages::status))
            .route("/debug/flows", get(pages::flows))
            .route(shadow::PATH, get(shadow::report))
            .route(flight::PATH, get(flight::dump))
            .route(debug::PATH_PREFIX, get(pages::dumps))
            .route(&format!("{}/", debug::PATH_PREFIX), get(pages::dumps))
            .route("/debug/services/{service}/{dump}", get(pages::dump_of_service))
            .fallback(pages::not_found)
            .with_state(pages::AdminState::new(self))
            .merge(debug::router(flow));
        let pages = match checked {
            Some(checked) => pages.layer(middleware::from_fn_with_state(checked, token::check)),
            None => pages,
        };
        pages.layer(middleware::from_fn(guard)).layer(middleware::from_fn_with_state(hosts, hosts::check))
    }
}

/// Sets headers so that no page of another origin can load anything from here, and no browser guesses content types.
async fn guard(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
