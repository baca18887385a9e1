//! The routes of a gateway's settings, for the requests of a log.

use evenkeel_engine::WorkEstimate;
use evenkeel_gateway::RequestRules;
use evenkeel_replay::{RoutedRequest, Routes};
use http::{Method, Uri};

use crate::tool_settings::nanos;

/// The routes of a gateway's settings.
#[derive(Debug)]
pub(super) struct SettingsRoutes(pub(super) RequestRules);

// === impl SettingsRoutes ===

impl Routes for SettingsRoutes {
    fn find(&self, method: &str, target: &str) -> Option<RoutedRequest> {
        let (method, uri) = (Method::from_bytes(method.as_bytes()).ok()?, target.parse::<Uri>().ok()?);
        let found = self.0.routed(method, uri)?;
        let work = WorkEstimate::seats(found.seats);
        Some(RoutedRequest {
            info: found.info,
            work,
            occupancy: found.occupancy,
            wait_limit: found.wait_limit.map(nanos),
            route: Some(found.route),
        })
    }
}
