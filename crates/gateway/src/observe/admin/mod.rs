//! The admin endpoint: metrics, health checks, dumps and settings, on a listener of its own.
//!
//! Nothing here asks who is calling. The listener is for this machine only unless the settings say otherwise, and the
//! dumps name users and paths: keep it away from clients.

mod explain;
mod hosts;
mod pages;
mod server;
mod slots;

use std::sync::Arc;

use axum::routing::get;
use axum::{Router, middleware};
use evenkeel::{FlowControl, debug};
use tokio::sync::watch;

use crate::config::Config;
use crate::observe::Readiness;
use crate::observe::metrics::GatewayMetrics;
use crate::proxy::RequestRules;

pub use server::serve;

/// What the admin endpoint shows.
#[derive(Debug, Clone)]
pub struct Admin {
    /// Whose metrics and dumps are shown.
    pub flow: FlowControl,
    /// The gateway's own metrics.
    pub metrics: GatewayMetrics,
    /// Whether the gateway wants more requests.
    pub readiness: Readiness,
    /// The settings in effect. They name files with secrets, but hold none.
    pub config: watch::Receiver<Arc<Config>>,
    /// How requests are interpreted, for explanations.
    pub rules: watch::Receiver<RequestRules>,
}

// === impl Admin ===

impl Admin {
    /// All pages.
    pub fn router(self) -> Router {
        let flow = self.flow.clone();
        let hosts = hosts::Hosts::new(&self.config.borrow().admin.hosts);
        Router::new()
            .route("/", get(pages::index))
            .route("/metrics", get(pages::metrics))
            .route("/healthz", get(pages::alive))
            .route("/livez", get(pages::alive))
            .route("/readyz", get(pages::ready))
            .route("/config", get(pages::config))
            .route(explain::PATH, get(explain::explain))
            .fallback(pages::not_found)
            .with_state(pages::State::new(self))
            .merge(debug::router(flow))
            .layer(middleware::from_fn_with_state(hosts, hosts::check))
    }
}
