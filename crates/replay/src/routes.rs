//! The seam through which a gateway's routes say what requests ask for and cost.

use std::fmt::Debug;

use evenkeel::service::Occupancy;
use evenkeel_engine::time::Nanos;
use evenkeel_engine::{RequestInfo, WorkEstimate};

/// What routes say of requests.
pub trait Routes: Debug + Send + Sync {
    /// What a route says of the request with this method and this path and query; `None` if no route matches it.
    fn find(&self, method: &str, target: &str) -> Option<RoutedRequest>;
}

/// What a route says of a request.
///
/// Not `#[non_exhaustive]`: whoever has routes has to say all of it.
#[derive(Debug, Clone)]
pub struct RoutedRequest {
    /// What the request asks for.
    pub info: RequestInfo<'static>,
    /// The seats that it takes.
    pub work: WorkEstimate,
    /// How long it holds them.
    pub occupancy: Occupancy,
    /// How long it waits for them at most, if the route says that.
    pub wait_limit: Option<Nanos>,
    /// The number of the route, by which costs are learnt.
    pub route: Option<u64>,
}
