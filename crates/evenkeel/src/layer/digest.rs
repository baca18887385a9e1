//! `Digest`: finds out what a request asks for.

use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::RequestInfo;
use evenkeel_engine::digest::routes::RouteTable;
use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths, Query};
use http::Uri;
use http::request::Parts;

use crate::control::digests::DigestInfo;
use crate::layer::deadline;
use crate::layer::occupancy::Occupancy;

/// Says what a request asks for. Any function from the head of a request does; see
/// [`FlowLayer::digest_with`](crate::FlowLayer::digest_with) for closures.
///
/// ```
/// use evenkeel::digest::{Digest, Kubernetes, Route, RouteTable};
///
/// let (parts, ()) = http::Request::get("/shops/17/orders").body(()).unwrap().into_parts();
/// let kubernetes = Kubernetes::default();
/// let request = Digest::digest(&kubernetes, &parts).unwrap();
/// assert!(!request.info.is_resource_request);
///
/// let table = RouteTable::new([Route::new("/shops/{namespace}/{resource}")]).unwrap();
/// let request = Digest::digest(&table, &parts).unwrap().info;
/// assert_eq!((&*request.verb, &*request.namespace, &*request.resource), ("list", "17", "orders"));
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what a request asks for",
    label = "expected a digest, such as `evenkeel::digest::RouteTable`",
    note = "for a closure, use `FlowLayer::digest_with`"
)]
pub trait Digest {
    /// What the digest finds beyond the [`RequestInfo`], such as a route: work estimates see it, and the service behind the
    /// layer gets it in [`Admitted`](crate::Admitted). `()` if there is nothing.
    type Extra;

    /// What the request with this head asks for.
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a, Self::Extra>, DigestError>;

    /// How much time the request says that it has, where that is part of its form: the parameter `timeout` of Kubernetes
    /// (HF-7). [`FlowLayer::deadline`](crate::FlowLayer::deadline) takes precedence.
    fn timeout(&self, _parts: &Parts) -> Option<Duration> {
        None
    }

    /// How long the request waits for seats at most, if it does not say itself how much time it has; `None`: as long as the
    /// [flow control](crate::FlowControlBuilder::wait_limit) says.
    fn wait_limit(&self, _digested: &Digested<'_, Self::Extra>) -> Option<Duration> {
        None
    }

    /// How long the request keeps its seats, where the digest knows; `None` leaves it to the preset.
    /// [`FlowLayer::long_running`](crate::FlowLayer::long_running) takes precedence.
    fn occupancy(&self, _digested: &Digested<'_, Self::Extra>) -> Option<Occupancy> {
        None
    }
}

/// The result of a [`Digest`]. Made by [`Digested::new`], or from a [`RequestInfo`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Digested<'a, X = ()> {
    /// What the request asks for, which flow schemas are matched with.
    pub info: RequestInfo<'a>,
    /// What the digest found beyond that.
    pub extra: X,
}

/// What a request asks for, as the preset of the flow control has it. It is what layers use unless they are told otherwise.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PresetDigest {
    /// The method and the path, and nothing else.
    Plain(PlainPaths),
    /// The requests of a kube-apiserver.
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

// === impl DigestInfo ===

impl<D: Digest> DigestInfo for D {
    fn info<'a>(&'a self, parts: &'a Parts) -> Option<RequestInfo<'a>> {
        self.digest(parts).ok().map(|digested| digested.info)
    }
}

// === impl Digest ===

impl Digest for Kubernetes {
    type Extra = ();

    #[inline]
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a>, DigestError> {
        Kubernetes::digest(self, parts.method.as_str(), target(&parts.uri)).map(Digested::from)
    }

    fn timeout(&self, parts: &Parts) -> Option<Duration> {
        deadline::of_kubernetes(query(&parts.uri))
    }
}

impl Digest for RouteTable {
    type Extra = ();

    #[inline]
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a>, DigestError> {
        RouteTable::digest(self, parts.method.as_str(), target(&parts.uri)).map(Digested::from)
    }
}

impl Digest for PlainPaths {
    type Extra = ();

    #[inline]
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a>, DigestError> {
        PlainPaths::digest(self, parts.method.as_str(), target(&parts.uri)).map(Digested::from)
    }
}

impl Digest for PresetDigest {
    type Extra = ();

    #[inline]
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a>, DigestError> {
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
    type Extra = ();

    #[inline]
    fn digest<'a>(&'a self, parts: &'a Parts) -> Result<Digested<'a>, DigestError> {
        self(parts).map(Digested::from)
    }
}

// === impl Digested ===

impl<'a, X> Digested<'a, X> {
    /// The result: what the request asks for, and what the digest found beyond that.
    #[inline]
    pub fn new(info: RequestInfo<'a>, extra: X) -> Self {
        Self { info, extra }
    }
}

impl<'a> From<RequestInfo<'a>> for Digested<'a> {
    #[inline]
    fn from(info: RequestInfo<'a>) -> Self {
        Self { info, extra: () }
    }
}

// === impl PresetDigest ===

impl From<Preset> for PresetDigest {
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::Plain | Preset::Llm => Self::Plain(PlainPaths),
            Preset::Kubernetes => Self::Kubernetes(Kubernetes::default()),
        }
    }
}
