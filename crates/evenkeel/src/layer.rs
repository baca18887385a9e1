//! `FlowLayer`: puts a flow control around a `tower` service.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::digest::{DigestError, Kubernetes, PlainPaths};
use evenkeel_engine::{RequestInfo, WorkEstimate};
use http::request::Parts;
use tower_layer::Layer;

use crate::digest::Digest;
use crate::digests::{DigestId, SharedDigest};
use crate::flow_control::FlowControl;
use crate::identify::Identify;
use crate::occupancy::Occupancy;
use crate::response::RejectionForm;
use crate::rules::Rules;
use crate::service::FlowService;
use crate::work::HttpWork;

/// Puts a [`FlowControl`] around a service. Made by [`FlowControl::layer`].
///
/// With nothing said but who is calling, paths are understood as those of the Kubernetes API and all others as what they
/// are, every request is one seat, and long-running requests are those of Kubernetes.
///
/// The answer to a request that is turned away has the [`Rejected`](crate::Rejected) among its extensions, so that a layer
/// further out can tell it from an answer of the service.
///
/// A service that is no Kubernetes should say what its paths mean, with [`plain_paths`](Self::plain_paths) or with a
/// [table of routes](Self::digest): otherwise a client can make a request look like a watch, whose seats are given back
/// early, or like one that is not limited at all.
///
/// ```
/// use std::time::Duration;
/// use evenkeel::FlowControl;
/// use evenkeel::engine::WorkEstimate;
/// use evenkeel::engine::digest::routes::{Route, RouteTable};
/// use evenkeel::identify::TrustedHeaders;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let routes = RouteTable::new([Route::new("/shops/{namespace}/{resource}")]).unwrap();
/// let layer = FlowControl::builder()
///     .build()
///     .layer(TrustedHeaders::default())
///     .digest(routes)
///     .work(WorkEstimate::seats(2))
///     .deadline(|_| Some(Duration::from_secs(8)));
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a layer does nothing until a service is put into it"]
pub struct FlowLayer<I, D = Kubernetes, W = WorkEstimate> {
    rules: Rules<I, D, W>,
}

// === impl FlowControl ===

impl FlowControl {
    /// A layer for `tower` services that lets requests in as this flow control decides. The argument says who is
    /// calling. Unless the service is a Kubernetes API, say next what its paths mean, as with
    /// [`plain_paths`](FlowLayer::plain_paths).
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::TrustedHeaders;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let flow = FlowControl::builder().server_concurrency(600).build();
    /// let app: Router = Router::new()
    ///     .route("/orders", get(async || "none"))
    ///     .layer(flow.layer(TrustedHeaders::default()).plain_paths());
    /// # }
    /// ```
    pub fn layer<I: Identify>(&self, identify: I) -> FlowLayer<I> {
        let (digest, digest_id) = remembered(self, Kubernetes::default());
        FlowLayer {
            rules: Rules {
                flow: self.clone(),
                identify: Arc::new(identify),
                digest,
                work: Arc::default(),
                digest_id,
                occupancy: None,
                deadline: None,
                rejection_form: RejectionForm::default(),
                shares_permits: false,
            },
        }
    }
}

/// A digest, and the number by which dumps find it.
fn remembered<D: Digest + Send + Sync + 'static>(flow: &FlowControl, digest: D) -> (Arc<D>, DigestId) {
    let digest = Arc::new(digest);
    let shared: Arc<SharedDigest> = Arc::clone(&digest) as _;
    let id = flow.shared().digests.add(Arc::downgrade(&shared));
    (digest, id)
}

// === impl FlowLayer ===

impl<I, D, W> FlowLayer<I, D, W> {
    /// Takes every request for what its method and its path say, and none for one of Kubernetes: `/api/v1/orders` is a
    /// path as any other, and no path, query or method gives seats back early or goes past the limits. This is what a
    /// service wants that is no Kubernetes and has no [table of routes](Self::digest).
    ///
    /// Every request keeps its seats to its end then; [`long_running`](Self::long_running) says otherwise.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::Anonymous;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let layer = FlowControl::builder().build().layer(Anonymous).plain_paths();
    /// # }
    /// ```
    pub fn plain_paths(self) -> FlowLayer<I, PlainPaths, W> {
        let mut layer = self.digest(PlainPaths);
        layer.rules.occupancy.get_or_insert_with(|| Arc::new(|_, _| Occupancy::ToTheEnd));
        layer
    }

    /// What is asked: the Kubernetes API with other prefixes, or a table of routes.
    ///
    /// Which requests run for long is decided by the verb that the digest finds, unless
    /// [`long_running`](Self::long_running) says otherwise. Where no route fits, the verb is the method in lower case: a
    /// client that sends `PROXY` is not limited there, as in Kubernetes, unless `long_running` says otherwise.
    pub fn digest<E: Digest + Send + Sync + 'static>(self, digest: E) -> FlowLayer<I, E, W> {
        let (digest, digest_id) = remembered(&self.rules.flow, digest);
        let Rules { flow, identify, work, occupancy, deadline, rejection_form, shares_permits, .. } = self.rules;
        FlowLayer {
            rules: Rules {
                flow,
                identify,
                digest,
                work,
                digest_id,
                occupancy,
                deadline,
                rejection_form,
                shares_permits,
            },
        }
    }

    /// What is asked, as a closure knows it. The dump of requests asks the closure once more, and has nothing left of the
    /// request but its method and its URI then.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::engine::RequestInfo;
    /// use evenkeel::identify::Anonymous;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let layer = FlowControl::builder().build().layer(Anonymous).digest_with(|parts| {
    ///     let shop = parts.headers.get("x-shop").and_then(|shop| shop.to_str().ok()).unwrap_or_default();
    ///     Ok(RequestInfo { namespace: shop.into(), path: parts.uri.path().into(), ..RequestInfo::default() })
    /// });
    /// # }
    /// ```
    pub fn digest_with<F>(self, digest: F) -> FlowLayer<I, F, W>
    where
        F: for<'a> Fn(&'a Parts) -> Result<RequestInfo<'a>, DigestError> + Send + Sync + 'static,
    {
        self.digest(digest)
    }

    /// How much work a request is: the same for all, what a closure says, or [`KubernetesWork`](crate::KubernetesWork).
    ///
    /// The arguments of a closure need their types, so that it holds for all requests:
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::engine::{Attributes, LevelInfo, WorkEstimate};
    /// use evenkeel::identify::Anonymous;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let work = |attributes: Attributes<'_>, _level: &LevelInfo| match &*attributes.request.path {
    ///     "/reports" => WorkEstimate::seats(5),
    ///     _ => WorkEstimate::ONE_SEAT,
    /// };
    /// let layer = FlowControl::builder().build().layer(Anonymous).plain_paths().work(work);
    /// # }
    /// ```
    pub fn work<V: HttpWork>(self, work: V) -> FlowLayer<I, D, V> {
        let Rules { flow, identify, digest, digest_id, occupancy, deadline, rejection_form, shares_permits, .. } =
            self.rules;
        let work = Arc::new(work);
        FlowLayer {
            rules: Rules {
                flow,
                identify,
                digest,
                work,
                digest_id,
                occupancy,
                deadline,
                rejection_form,
                shares_permits,
            },
        }
    }

    /// Which requests run for long, and for how long they take their seats. The default is
    /// [`Occupancy::kubernetes`].
    ///
    /// Whoever can choose what this looks at can go past the limits: look at what the service alone decides.
    ///
    /// ```
    /// use evenkeel::{FlowControl, Occupancy};
    /// use evenkeel::identify::Anonymous;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let layer = FlowControl::builder().build().layer(Anonymous).long_running(|parts, _| match parts.uri.path() {
    ///     "/healthz" => Occupancy::None,
    ///     "/events" => Occupancy::ToTheHeaders,
    ///     _ => Occupancy::ToTheEnd,
    /// });
    /// # }
    /// ```
    pub fn long_running(
        mut self,
        occupancy: impl Fn(&Parts, &RequestInfo<'_>) -> Occupancy + Send + Sync + 'static,
    ) -> Self {
        self.rules.occupancy = Some(Arc::new(occupancy));
        self
    }

    /// How long a request has until nobody wants its answer any more. It waits for a quarter of that at most (HF-6).
    /// Nothing is stopped when the time is over.
    ///
    /// Without this it is what the request itself says, if that is less than four times the
    /// [`wait_limit`](crate::Builder::wait_limit): the parameter `timeout` of a Kubernetes request (HF-7), or the header
    /// `grpc-timeout` of a call of gRPC. What cannot be read as a time is left to the service.
    ///
    /// Only ordinary requests are asked for: those that keep their seats [to the headers](Occupancy::ToTheHeaders) are
    /// meant to go on and have no deadline (HF-7), and wait for the [`wait_limit`](crate::Builder::wait_limit).
    pub fn deadline(mut self, deadline: impl Fn(&Parts) -> Option<Duration> + Send + Sync + 'static) -> Self {
        self.rules.deadline = Some(Arc::new(deadline));
        self
    }

    /// Gives every handler a share of its request's permit: a [`SharedPermit`](crate::SharedPermit) among the extensions of
    /// the request.
    ///
    /// A request has its seats until its response has ended, or its future is dropped because the client has left.
    /// Dropping the future stops a handler, so its work ends with its seats. Work that a handler has handed to somebody
    /// else goes on: `spawn`, `spawn_blocking`, another thread. Give such work a clone of the permit, and the seats stay
    /// taken until it has ended. It costs one allocation for each request.
    ///
    /// ```
    /// use axum::{Extension, Router, routing::post};
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::{FlowControl, SharedPermit};
    ///
    /// async fn resize(Extension(permit): Extension<SharedPermit>) -> &'static str {
    ///     // The work runs to its end even if the client leaves. It keeps its seat until then.
    ///     let work = tokio::task::spawn_blocking(move || {
    ///         let _permit = permit;
    ///         "done"
    ///     });
    ///     work.await.unwrap_or("failed")
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let flow = FlowControl::builder().build();
    /// let app: Router =
    ///     Router::new().route("/resize", post(resize)).layer(flow.layer(Anonymous).plain_paths().share_permits());
    /// # }
    /// ```
    pub fn share_permits(mut self) -> Self {
        self.rules.shares_permits = true;
        self
    }

    /// How a request is told that there are too many.
    pub fn rejection_form(mut self, form: RejectionForm) -> Self {
        self.rules.rejection_form = form;
        self
    }
}

impl<S, I, D, W> Layer<S> for FlowLayer<I, D, W> {
    type Service = FlowService<S, I, D, W>;

    fn layer(&self, inner: S) -> Self::Service {
        FlowService::new(inner, self.rules.clone())
    }
}

impl<I, D, W> Clone for FlowLayer<I, D, W> {
    fn clone(&self) -> Self {
        Self { rules: self.rules.clone() }
    }
}
