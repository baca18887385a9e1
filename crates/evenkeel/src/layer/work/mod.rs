//! How much work HTTP requests are.

mod kubernetes;
mod watch;

use evenkeel_engine::digest::Query;
use evenkeel_engine::{Attributes, LevelInfo, RequestInfo, WorkEstimate};

use crate::control::request::EstimateWork;

pub use kubernetes::KubernetesWork;
pub use watch::Watch;

/// Says how much work an HTTP request is. Everything that can [`EstimateWork`] can do this too, without a look at the
/// query.
pub trait HttpWork {
    /// How much work the request is, given its query, the level that it belongs to, and what
    /// [`interested_watches`](Self::interested_watches) has said of it.
    fn estimate_http(
        &self,
        attributes: Attributes<'_>,
        query: Query<'_>,
        level: &LevelInfo,
        watches: Option<u64>,
    ) -> WorkEstimate;

    /// What has to be remembered of a watch while it runs, if anything has: see [`KubernetesWork`]. It has not been let
    /// in yet.
    fn watch(&self, _request: &RequestInfo<'_>, _query: Query<'_>) -> Option<Watch> {
        None
    }

    /// How many watches the request concerns, if that matters to its estimate: for the estimate and for the metric
    /// `watch_count_samples`, which are to see the same number (WE-18). It is asked once for each request.
    fn interested_watches(&self, _request: &RequestInfo<'_>) -> Option<u64> {
        None
    }
}

// === impl HttpWork ===

impl<W: EstimateWork> HttpWork for W {
    fn estimate_http(
        &self,
        attributes: Attributes<'_>,
        _query: Query<'_>,
        level: &LevelInfo,
        _watches: Option<u64>,
    ) -> WorkEstimate {
        self.estimate(attributes, level)
    }
}
