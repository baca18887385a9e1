//! `Routes`: the trait through which a gateway's routes interpret requests and give them costs.

use std::fmt::Debug;

use evenkeel::service::Occupancy;
use evenkeel_engine::time::Nanos;
use evenkeel_engine::{RequestInfo, WorkEstimate};

/// The routes of a gateway.
pub trait Routes: Debug + Send + Sync {
    /// The request with this method and this path and query, as its route has it; `None` if no route matches it.
    fn find(&self, method: &str, target: &str) -> Option<RoutedRequest>;
}

/// A request as its route has it.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
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
