//! `RoutedRequest`: a request as its route has it, for tools that have no request at hand.

use std::time::Duration;

use evenkeel::digest::Digest;
use evenkeel::service::Occupancy;
use evenkeel_engine::RequestInfo;
use http::{Method, Request, Uri};

use super::RequestRules;

/// A request as its route has it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoutedRequest {
    /// What the request asks for.
    pub info: RequestInfo<'static>,
    /// The seats that it takes, 0 if it takes none.
    pub seats: u32,
    /// How long it holds them.
    pub occupancy: Occupancy,
    /// How long it waits for them at most, if the route says that.
    pub wait_limit: Option<Duration>,
    /// The number of the route, by which costs are learnt.
    pub route: u64,
}

// === impl RequestRules ===

impl RequestRules {
    /// The request as its route has it; `None` if no route matches it.
    pub fn routed(&self, method: Method, uri: Uri) -> Option<RoutedRequest> {
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.uri) = (method, uri);
        let target = self.target(&mut parts);
        let digested = self.digest_target(&target).ok()?;
        let rule = self.rule_of(digested.extra)?;
        let (seats, route) = (rule.work.max_seats(), rule.cost_key);
        let occupancy = self.occupancy(&digested).unwrap_or_default();
        let wait_limit = self.wait_limit(&digested);
        Some(RoutedRequest { info: digested.info.into_owned(), seats, occupancy, wait_limit, route })
    }
}
