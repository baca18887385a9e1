//! The dumps as a router of axum.

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::routing::any;

use super::RequestColumns;
use crate::control::flow_control::FlowControl;

/// Where a kube-apiserver has the dumps.
pub const PATH_PREFIX: &str = "/debug/api_priority_and_fairness";

/// Serves the three dumps under [`PATH_PREFIX`], for any method (OB-9). Mount it only where those who can reach it may see it.
///
/// ```
/// use evenkeel::{FlowControl, debug};
///
/// let flow = FlowControl::builder().server_concurrency(100).build();
/// let app: axum::Router = axum::Router::new().merge(debug::router(flow));
/// ```
pub fn router(flow: FlowControl) -> Router {
    let routes = Router::new()
        .route("/dump_priority_levels", any(async |State(flow): State<FlowControl>| flow.dump_priority_levels()))
        .route("/dump_queues", any(async |State(flow): State<FlowControl>| flow.dump_queues()))
        .route("/dump_requests", any(dump_requests));
    Router::new().nest(PATH_PREFIX, routes).with_state(flow)
}

async fn dump_requests(State(flow): State<FlowControl>, RawQuery(query): RawQuery) -> String {
    flow.dump_requests(columns(query.as_deref().unwrap_or_default()))
}

/// Any text at all for `includeRequestDetails` asks for the details.
fn columns(query: &str) -> RequestColumns {
    let mut parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
    match parameters.find(|(name, _)| *name == "includeRequestDetails") {
        Some((_, value)) if !value.is_empty() => RequestColumns::WithDetails,
        _ => RequestColumns::Basic,
    }
}
