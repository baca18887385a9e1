//! How much work requests are.

mod kubernetes;
mod watch;

use std::borrow::Cow;

use evenkeel_engine::digest::Query;
use evenkeel_engine::{Attributes, LevelInfo, RequestInfo, WorkEstimate};

use crate::control::cost_source::RouteCost;

pub use kubernetes::KubernetesWork;
pub use watch::Watch;

/// Estimates how much work a request is: how many seats it takes, and for how long.
///
/// A [`WorkEstimate`] is the same for all requests. A closure sees the request and its level:
///
/// ```
/// use evenkeel::work::{EstimateWork, LevelInfo};
/// use evenkeel::{Attributes, WorkEstimate};
///
/// let reports = |attributes: Attributes<'_>, _level: &LevelInfo| match &*attributes.request.path {
///     "/reports" => WorkEstimate::seats(5),
///     _ => WorkEstimate::ONE_SEAT,
/// };
/// fn is_estimate(_: impl EstimateWork) {}
/// is_estimate(reports);
/// is_estimate(WorkEstimate::seats(2));
/// ```
///
/// Requests that only wait at the service, such as long polls, need not take a seat ([`WorkEstimate::NO_SEAT`]). They start at once
/// and never make others wait. Each counts among the long-running requests of its level until its response has ended, and the
/// annotation `evenkeel.dev/max-long-running` of the level limits those.
///
/// ```
/// use evenkeel::identify::Anonymous;
/// use evenkeel::work::LevelInfo;
/// use evenkeel::{Attributes, FlowControl, WorkEstimate};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let layer = FlowControl::builder().build().layer(Anonymous).work(|attributes: Attributes<'_>, _: &LevelInfo| {
///     if attributes.request.path == "/poll" { WorkEstimate::NO_SEAT } else { WorkEstimate::ONE_SEAT }
/// });
/// # }
/// ```
///
/// `X` is the type of what the [digest](crate::digest::Digest::Extra) of a layer finds beyond the [`RequestInfo`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not estimate the work of requests",
    label = "expected a `WorkEstimate`, a closure, or `KubernetesWork`",
    note = "a closure has the form `|attributes: Attributes<'_>, level: &LevelInfo| …`, with the types of its arguments written out, \
            and returns a `WorkEstimate`"
)]
pub trait EstimateWork<X = ()> {
    /// How much work the request is.
    fn estimate(&self, request: &WorkInput<'_, X>) -> WorkEstimate;

    /// Which rule the estimate comes from, in words for people. [`explain`](crate::FlowControl::explain) asks for it.
    fn rule(&self, _request: &WorkInput<'_, X>) -> Cow<'static, str> {
        Cow::Borrowed("an estimate of the service")
    }

    /// The watch to count while the request runs, if it is one: see [`KubernetesWork`]. The layer asks for it when the request
    /// arrives, and [starts](Watch) it when the request is let in.
    fn watch(&self, _request: &RequestInfo<'_>, _query: Query<'_>, _extra: &X) -> Option<Watch> {
        None
    }

    /// The cost as far as the route of the request determines it, if there are routes that do.
    fn route_cost(&self, _extra: &X) -> RouteCost<'_> {
        RouteCost::default()
    }

    /// How many watches the request concerns, if its estimate depends on that. The estimate and the metric
    /// `watch_count_samples` get the same number (WE-18), so this is called once for each request.
    fn interested_watches(&self, _request: &RequestInfo<'_>, _extra: &X) -> Option<u64> {
        None
    }
}

/// A request when its work is estimated.
#[derive(Debug)]
#[non_exhaustive]
pub struct WorkInput<'a, X = ()> {
    /// Who asks for what.
    pub attributes: Attributes<'a>,
    /// The level that the request belongs to.
    pub level: &'a LevelInfo,
    /// The query of an HTTP request, as it was sent.
    pub query: Query<'a>,
    /// What [`EstimateWork::interested_watches`] has counted.
    pub watches: Option<u64>,
    /// What the [digest](crate::digest::Digest::Extra) found.
    pub extra: &'a X,
}

// === impl EstimateWork ===

impl<X> EstimateWork<X> for WorkEstimate {
    #[inline]
    fn estimate(&self, _request: &WorkInput<'_, X>) -> WorkEstimate {
        *self
    }

    fn rule(&self, _request: &WorkInput<'_, X>) -> Cow<'static, str> {
        Cow::Borrowed("the same for every request")
    }
}

impl<X, F: Fn(Attributes<'_>, &LevelInfo) -> WorkEstimate> EstimateWork<X> for F {
    #[inline]
    fn estimate(&self, request: &WorkInput<'_, X>) -> WorkEstimate {
        self(request.attributes, request.level)
    }
}

// === impl WorkInput ===

impl<'a, X> WorkInput<'a, X> {
    /// The same with another extra, for an estimate that is made of others.
    pub fn with_extra<Y>(&self, extra: &'a Y) -> WorkInput<'a, Y> {
        let Self { attributes, level, query, watches, .. } = *self;
        WorkInput { attributes, level, query, watches, extra }
    }
}
