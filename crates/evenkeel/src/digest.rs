//! `Digest`: what is asked.

use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::routes::RouteTable;
use evenkeel_engine::digest::{DigestError, Kubernetes};
use http::Uri;
use http::request::Parts;

/// Says what a request asks for. Any function from the head of a request does; see
/// [`FlowLayer::digest_with`](crate::FlowLayer::digest_with) for closures.
///
/// ```
/// use evenkeel::Digest;
/// use evenkeel::engine::digest::{Kubernetes, routes::{Route, RouteTable}};
///
/// let (parts, ()) = http::Request::get("/shops/17/orders").body(()).unwrap().into_parts();
/// let kubernetes = Kubernetes::default();
/// let request = Digest::digest(&kubernetes, &parts).unwrap();
/// assert!(!request.is_resource_request);
///
/// let table = RouteTable::new([Route::new("/shops/{namespace}/{resource}")]).unwrap();
/// let request = Digest::digest(&table, &parts).unwrap();
/// assert_eq!((&*request.verb, &*request.namespace, &*request.resource), ("list", "17", "orders"));
/// ```
pub trait Digest {
    /// What the request with this head asks for.
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError>;
}

/// The path and the query of a request, as they were sent.
pub(crate) fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

// === impl Digest ===

impl Digest for Kubernetes {
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        Kubernetes::digest(self, parts.method.as_str(), target(&parts.uri))
    }
}

impl Digest for RouteTable {
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        RouteTable::digest(self, parts.method.as_str(), target(&parts.uri))
    }
}

impl<F> Digest for F
where
    F: for<'a> Fn(&'a Parts) -> Result<RequestInfo<'a>, DigestError>,
{
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        self(parts)
    }
}
