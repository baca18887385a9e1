//! A layer whose type can be written down, whatever closures it is made of.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::digest::{DigestError, Query};
use evenkeel_engine::{RequestInfo, User, WorkEstimate};
use http::request::Parts;

use crate::control::cost_source::RouteCost;
use crate::control::work::{EstimateWork, Watch, WorkInput};
use crate::layer::admitted::RequestOnly;
use crate::layer::digest::{Digest, Digested};
use crate::layer::flow_layer::FlowLayer;
use crate::layer::identify::{Identify, Unidentified};
use crate::layer::occupancy::Occupancy;

/// A [`FlowLayer`] that can be named, in a struct or as the type that a function returns. Made by [`FlowLayer::boxed`].
///
/// `H` is how the service gets its requests, and `X` is what the digest finds beyond the [`RequestInfo`].
///
/// ```
/// use evenkeel::service::BoxedFlowLayer;
/// use evenkeel::{FlowControl, User};
/// use http::request::Parts;
///
/// /// What all servers of a program share.
/// struct Shared {
///     layer: BoxedFlowLayer,
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let flow = FlowControl::builder().build();
/// let layer = flow.layer(|parts: &Parts| parts.extensions.get::<User>().cloned());
/// let shared = Shared { layer: layer.boxed() };
/// let app: axum::Router = axum::Router::new().layer(shared.layer.clone());
/// # }
/// ```
pub type BoxedFlowLayer<H = RequestOnly, X = ()> = FlowLayer<BoxIdentify, BoxDigest<X>, BoxWork<X>, H>;

/// Whatever identifies the callers of a [`BoxedFlowLayer`].
#[derive(Clone)]
pub struct BoxIdentify(pub(super) Arc<dyn Identify + Send + Sync>);

/// Whatever says what the requests of a [`BoxedFlowLayer`] ask for.
pub struct BoxDigest<X = ()>(pub(super) Arc<dyn Digest<Extra = X> + Send + Sync>);

/// Whatever estimates the work of the requests of a [`BoxedFlowLayer`].
pub struct BoxWork<X = ()>(pub(super) Arc<dyn EstimateWork<X> + Send + Sync>);

// === impl BoxIdentify ===

impl Identify for BoxIdentify {
    fn identify(&self, parts: &Parts) -> Result<Arc<User>, Unidentified> {
        self.0.identify(parts)
    }
}

impl fmt::Debug for BoxIdentify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxIdentify")
    }
}

// === impl BoxDigest ===

impl<X> Digest for BoxDigest<X> {
    type Extra = X;

    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a, X>, DigestError> {
        self.0.digest(parts)
    }

    fn timeout(&self, parts: &Parts) -> Option<Duration> {
        self.0.timeout(parts)
    }

    fn wait_limit(&self, digested: &Digested<'_, X>) -> Option<Duration> {
        self.0.wait_limit(digested)
    }

    fn occupancy(&self, digested: &Digested<'_, X>) -> Option<Occupancy> {
        self.0.occupancy(digested)
    }
}

impl<X> fmt::Debug for BoxDigest<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxDigest")
    }
}

// === impl BoxWork ===

impl<X> EstimateWork<X> for BoxWork<X> {
    fn estimate(&self, request: &WorkInput<'_, X>) -> WorkEstimate {
        self.0.estimate(request)
    }

    fn rule(&self, request: &WorkInput<'_, X>) -> Cow<'static, str> {
        self.0.rule(request)
    }

    fn watch(&self, request: &RequestInfo<'_>, query: Query<'_>, extra: &X) -> Option<Watch> {
        self.0.watch(request, query, extra)
    }

    fn route_cost(&self, extra: &X) -> RouteCost<'_> {
        self.0.route_cost(extra)
    }

    fn interested_watches(&self, request: &RequestInfo<'_>, extra: &X) -> Option<u64> {
        self.0.interested_watches(request, extra)
    }
}

impl<X> fmt::Debug for BoxWork<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxWork")
    }
}
