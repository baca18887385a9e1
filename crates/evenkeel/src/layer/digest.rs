//! `Digest`: what is asked.

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::routes::RouteTable;
use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths, Query};
use http::Uri;
use http::request::Parts;

use crate::layer::deadline;

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

    /// How much time the request says that it has, where that is part of its form: the parameter `timeout` of Kubernetes
    /// (HF-7). It is not asked if [`FlowLayer::deadline`](crate::FlowLayer::deadline) was.
    fn timeout(&self, _parts: &Parts) -> Option<Duration> {
        None
    }
}

/// What a request asks for, as the preset of the flow control has it. It is what layers use unless they are told otherwise.
#[derive(Debug, Clone)]
pub enum PresetDigest {
    /// The method and the path, and nothing else.
    Plain(PlainPaths),
    /// What a kube-apiserver understands.
    Kubernetes(Kubernetes),
}

/// The path and the query of a request, as they were sent.
pub(crate) fn target(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

/// The query of a request, as it was sent.
#[inline]
pub(crate) fn query(uri: &Uri) -> Query<'_> {
    Query::new(uri.query().unwrap_or_default())
}

// === impl Digest ===

impl Digest for Kubernetes {
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        Kubernetes::digest(self, parts.method.as_str(), target(&parts.uri))
    }

    fn timeout(&self, parts: &Parts) -> Option<Duration> {
        deadline::of_kubernetes(query(&parts.uri))
    }
}

impl Digest for RouteTable {
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        RouteTable::digest(self, parts.method.as_str(), target(&parts.uri))
    }
}

impl Digest for PlainPaths {
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        PlainPaths::digest(self, parts.method.as_str(), target(&parts.uri))
    }
}

impl Digest for PresetDigest {
    #[inline]
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<RequestInfo<'a>, DigestError> {
        match self {
            Self::Plain(plain) => Digest::digest(plain, parts),
            Self::Kubernetes(kubernetes) => Digest::digest(kubernetes, parts),
        }
    }

    #[inline]
    fn timeout(&self, parts: &Parts) -> Option<Duration> {
        match self {
            Self::Plain(plain) => plain.timeout(parts),
            Self::Kubernetes(kubernetes) => kubernetes.timeout(parts),
        }
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

// === impl PresetDigest ===

impl From<Preset> for PresetDigest {
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::Plain => Self::Plain(PlainPaths),
            Preset::Kubernetes => Self::Kubernetes(Kubernetes::default()),
        }
    }
}
