//! `FlowLayer`: puts a flow control around a `tower` service.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_api::Preset;
use evenkeel_engine::digest::{DigestError, PlainPaths};
use evenkeel_engine::{RequestInfo, WorkEstimate};
use http::Response;
use http::request::Parts;
use tower_layer::Layer;

use crate::control::cost_source::CountCost;
use crate::control::flow_control::FlowControl;
use crate::control::work::EstimateWork;
use crate::layer::admitted::{InsertAdmitted, PassAdmitted, RequestOnly};
use crate::layer::boxed::{BoxIdentify, BoxWork, BoxedFlowLayer};
use crate::layer::digest::{Digest, PresetDigest};
use crate::layer::identify::{Identify, NoIdentity};
use crate::layer::occupancy::Occupancy;
use crate::layer::refusal::{Refusal, Refusals};
use crate::layer::response::RejectionForm;
use crate::layer::rules::{LayerSettings, RegisteredDigest, Rules};
use crate::layer::service::FlowService;

/// Puts a [`FlowControl`] around a service. Made by [`FlowControl::layer`].
///
/// By default a request is its method and its path, and takes one seat to its end. A user whose name begins with `system:`
/// gets a 401, and groups with such names are left out, because the mandatory objects exempt some of them from all limits.
///
/// If the flow control is [for a Kubernetes API](crate::FlowControlBuilder::kubernetes), requests, long-running ones and
/// names are what they are there.
///
/// The response to a rejected request has the [`Rejected`](crate::Rejected) among its extensions, so that an outer layer can
/// tell it from a response of the service. [`on_refusal`](Self::on_refusal) makes responses in a format of your own.
///
/// ```
/// use std::time::Duration;
/// use evenkeel::digest::{Route, RouteTable};
/// use evenkeel::identify::Anonymous;
/// use evenkeel::{FlowControl, WorkEstimate};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let routes = RouteTable::new([Route::new("/shops/{namespace}/{resource}")]).unwrap();
/// let layer = FlowControl::builder()
///     .build()
///     .layer(Anonymous)
///     .digest(routes)
///     .work(WorkEstimate::seats(2))
///     .deadline(|_| Some(Duration::from_secs(8)));
/// # }
/// ```
#[must_use = "a layer does nothing until a service is put into it"]
pub struct FlowLayer<I, D = PresetDigest, W = WorkEstimate, H = RequestOnly> {
    rules: Rules<I, D, W>,
    hand_over: PhantomData<fn() -> H>,
}

// === impl FlowControl ===

impl FlowControl {
    /// A layer for `tower` services that lets requests in as this flow control decides. The argument identifies the caller.
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::Anonymous;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let flow = FlowControl::builder().server_concurrency(600).build();
    /// let app: Router = Router::new().route("/orders", get(async || "none")).layer(flow.layer(Anonymous));
    /// # }
    /// ```
    #[doc(alias = "rate_limit")]
    #[doc(alias = "concurrency_limit")]
    pub fn layer<I: Identify>(&self, identify: I) -> FlowLayer<I> {
        self.layer_with(identify)
    }

    /// A layer for services that are called with [`FlowService::call_as`](crate::service::FlowService::call_as), which says for each
    /// request who is calling. The service is no `tower` service.
    pub fn layer_without_identity(&self) -> FlowLayer<NoIdentity> {
        self.layer_with(NoIdentity)
    }

    fn layer_with<I>(&self, identify: I) -> FlowLayer<I> {
        FlowLayer::new(Rules {
            identify: Arc::new(identify),
            digest: RegisteredDigest::new(self, PresetDigest::from(self.preset())),
            work: Arc::default(),
            settings: LayerSettings {
                flow: self.clone(),
                occupancy: None,
                deadline: None,
                refusals: Refusals::Own(RejectionForm::default()),
                cost_source: None,
                tells_rates: false,
                tells_waits: false,
                shares_permits: false,
                ends_revoked: true,
                allows_system_names: self.preset() == Preset::Kubernetes,
            },
        })
    }
}

// === impl FlowLayer ===

impl<I, D, W, H> FlowLayer<I, D, W, H> {
    fn new(rules: Rules<I, D, W>) -> Self {
        Self { rules, hand_over: PhantomData }
    }

    /// Takes every request for what its method and its path say, and none for one of Kubernetes: `/api/v1/orders` is a
    /// path as any other, and no path, query or method gives seats back early or goes past the limits. This is the default,
    /// unless the flow control is [for a Kubernetes API](crate::FlowControlBuilder::kubernetes).
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
    pub fn plain_paths(self) -> FlowLayer<I, PlainPaths, W, H> {
        let mut layer = self.digest(PlainPaths);
        layer.rules.settings.occupancy.get_or_insert_with(|| Arc::new(|_, _| Occupancy::ToTheEnd));
        layer
    }

    /// What is asked: the Kubernetes API with other prefixes, or a table of routes.
    ///
    /// If the flow control is [for a Kubernetes API](crate::FlowControlBuilder::kubernetes), the verb that the digest finds
    /// decides which requests run for long, unless [`long_running`](Self::long_running) says otherwise. Where no route fits, the verb is
    /// the method in lower case: a client that sends `PROXY` is not limited then, as in Kubernetes.
    pub fn digest<E: Digest + Send + Sync + 'static>(self, digest: E) -> FlowLayer<I, E, W, H> {
        let Rules { identify, work, settings, .. } = self.rules;
        let digest = RegisteredDigest::new(&settings.flow, digest);
        FlowLayer::new(Rules { identify, digest, work, settings })
    }

    /// What is asked, as a closure knows it. The dump of requests asks the closure once more, and has nothing left of the
    /// request but its method and its URI then.
    ///
    /// ```
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::{FlowControl, RequestInfo};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let layer = FlowControl::builder().build().layer(Anonymous).digest_with(|parts| {
    ///     let shop = parts.headers.get("x-shop").and_then(|shop| shop.to_str().ok()).unwrap_or_default();
    ///     // Flow schemas look at the verb, which is the method in lower case.
    ///     let verb = parts.method.as_str().to_ascii_lowercase().into();
    ///     Ok(RequestInfo { namespace: shop.into(), verb, path: parts.uri.path().into(), ..RequestInfo::default() })
    /// });
    /// # }
    /// ```
    pub fn digest_with<F>(self, digest: F) -> FlowLayer<I, F, W, H>
    where
        F: for<'a> Fn(&'a Parts) -> Result<RequestInfo<'a>, DigestError> + Send + Sync + 'static,
    {
        self.digest(digest)
    }

    /// How much work a request is: the same for all, what a closure says, or [`KubernetesWork`](crate::work::KubernetesWork).
    ///
    /// The arguments of a closure need their types, so that it holds for all requests:
    ///
    /// ```
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::work::LevelInfo;
    /// use evenkeel::{Attributes, FlowControl, WorkEstimate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let work = |attributes: Attributes<'_>, _level: &LevelInfo| match &*attributes.request.path {
    ///     "/reports" => WorkEstimate::seats(5),
    ///     _ => WorkEstimate::ONE_SEAT,
    /// };
    /// let layer = FlowControl::builder().build().layer(Anonymous).work(work);
    /// # }
    /// ```
    pub fn work<V>(self, work: V) -> FlowLayer<I, D, V, H>
    where
        D: Digest,
        V: EstimateWork<D::Extra>,
    {
        let Rules { identify, digest, settings, .. } = self.rules;
        FlowLayer::new(Rules { identify, digest, work: Arc::new(work), settings })
    }

    /// Calls the inner service with an [`AdmittedRequest`](crate::service::AdmittedRequest): the request, who sent it, its flow schema
    /// and priority level, and what the [digest](Digest::Extra) found. Allocates nothing.
    ///
    /// Every request is identified then, also one that [is not limited](Occupancy::None).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::service::AdmittedRequest;
    /// use http::{Request, Response};
    /// use http_body_util::Full;
    /// use tower::{Layer, ServiceExt, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let level = service_fn(async |AdmittedRequest { admitted, .. }: AdmittedRequest<()>| {
    ///     let level = admitted.class.map_or("none".to_owned(), |class| class.priority_level().to_owned());
    ///     Ok::<_, std::io::Error>(Response::new(Full::new(bytes::Bytes::from(level))))
    /// });
    /// let service = FlowControl::builder().build().layer(Anonymous).pass_admitted().layer(level);
    /// let response = service.oneshot(Request::new(())).await.unwrap();
    /// # use http_body_util::BodyExt;
    /// assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "everyone");
    /// # }
    /// ```
    pub fn pass_admitted(self) -> FlowLayer<I, D, W, PassAdmitted> {
        FlowLayer::new(self.rules)
    }

    /// Inserts an [`Admitted`](crate::Admitted) into the extensions of every request, for handlers of axum and the like. It
    /// costs an allocation. With the feature `axum`, handlers take it as an argument:
    ///
    #[cfg_attr(feature = "axum", doc = "```")]
    #[cfg_attr(not(feature = "axum"), doc = "```ignore")]
    /// use axum::{Router, routing::get};
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::{Admitted, FlowControl};
    ///
    /// async fn greet(admitted: Admitted) -> String {
    ///     format!("Hello {}", admitted.user.name)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let flow = FlowControl::builder().build();
    /// let app: Router = Router::new().route("/", get(greet)).layer(flow.layer(Anonymous).insert_admitted());
    /// # }
    /// ```
    ///
    /// Without the feature, it is an `Extension<Admitted>`. Every request is identified then, also one that
    /// [is not limited](Occupancy::None).
    pub fn insert_admitted(self) -> FlowLayer<I, D, W, InsertAdmitted> {
        FlowLayer::new(self.rules)
    }

    /// Which requests run for long, and for how long they take their seats. By default all take them to their ends, or what
    /// [`Occupancy::kubernetes`] says if the flow control is [for a Kubernetes API](crate::FlowControlBuilder::kubernetes).
    ///
    /// A response that switches protocols gives its seats back whatever this says: a 101, or a successful response to CONNECT, as
    /// for a `WebSocket` over HTTP/2.
    ///
    /// A client that can choose what the closure looks at can go past the limits: look only at what the service decides.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::service::Occupancy;
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
    #[doc(alias = "streaming")]
    #[doc(alias = "websocket")]
    #[doc(alias = "sse")]
    pub fn long_running(
        mut self,
        occupancy: impl Fn(&Parts, &RequestInfo<'_>) -> Occupancy + Send + Sync + 'static,
    ) -> Self {
        self.rules.settings.occupancy = Some(Arc::new(occupancy));
        self
    }

    /// How long a request has until its response is no longer wanted. It waits for a quarter of that at most (HF-6). Nothing is
    /// stopped when the time is over.
    ///
    /// Without this it is what the request itself says, if that is less than four times the
    /// [`wait_limit`](crate::FlowControlBuilder::wait_limit): the parameter `timeout` of a Kubernetes request (HF-7), or the header
    /// `grpc-timeout` of a call of gRPC. What cannot be read as a time is left to the service.
    ///
    /// Only ordinary requests are asked for: those that keep their seats [to the headers](Occupancy::ToTheHeaders) are
    /// meant to go on and have no deadline (HF-7), and wait for the [`wait_limit`](crate::FlowControlBuilder::wait_limit).
    pub fn deadline(mut self, deadline: impl Fn(&Parts) -> Option<Duration> + Send + Sync + 'static) -> Self {
        self.rules.settings.deadline = Some(Arc::new(deadline));
        self
    }

    /// Lets users and groups have names that begin with `system:`, as they may for a
    /// [Kubernetes API](crate::FlowControlBuilder::kubernetes). The group `system:masters` is not limited.
    ///
    /// Use it only if the code that identifies callers never gives such a name to a client just because the client asks for it.
    pub fn allow_system_names(mut self) -> Self {
        self.rules.settings.allows_system_names = true;
        self
    }

    /// Gives every handler a share of its request's permit: a [`SharedPermit`](crate::request::SharedPermit) among the extensions of
    /// the request.
    ///
    /// A request has its seats until its response has ended, or its future is dropped because the client has left.
    /// Dropping the future stops a handler, so its work ends with its seats. Work that a handler has handed to somebody
    /// else goes on: `spawn`, `spawn_blocking`, another thread. Give such work a clone of the permit, and the seats stay
    /// taken until it has ended. It costs one allocation for each request.
    ///
    /// ```
    /// use axum::{Extension, Router, routing::post};
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::request::SharedPermit;
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
    ///     Router::new().route("/resize", post(resize)).layer(flow.layer(Anonymous).share_permits());
    /// # }
    /// ```
    pub fn share_permits(mut self) -> Self {
        self.rules.settings.shares_permits = true;
        self
    }

    /// Leaves requests of revocable levels alone that are [told to end](crate::Permit::revoked): the code that drives them polls
    /// [`FlowFuture::poll_revoked`](crate::service::FlowFuture::poll_revoked) and
    /// [`FlowBody::poll_revoked`](crate::service::FlowBody::poll_revoked), and ends them in a form that clients understand.
    ///
    /// Without this, the layer ends them. Where there is no response yet, it is 503 with `Retry-After`. A response that is a stream of
    /// server-sent events ends with the event `error`; one whose length is known is cut off, which clients notice. Other responses go on:
    /// nobody could tell that they are not complete.
    pub fn leave_revoked(mut self) -> Self {
        self.rules.settings.ends_revoked = false;
        self
    }

    /// Sets the source of costs for requests whose unit is `tokens`: see [`CountCost`](crate::cost::CountCost).
    pub fn count_cost(mut self, source: impl CountCost) -> Self {
        self.rules.settings.cost_source = Some(Arc::new(source));
        self
    }

    /// Adds headers to the responses to requests that have waited: `X-Evenkeel-Waited`, how long, in seconds, and `X-Evenkeel-Queue-Position`, the
    /// place among those that waited in its level when the request arrived.
    pub fn wait_fields(mut self) -> Self {
        self.rules.settings.tells_waits = true;
        self
    }

    /// Adds the fields `RateLimit` and `RateLimit-Policy` to responses (draft-ietf-httpapi-ratelimit-headers): how much of its
    /// rate the flow of the request has left (`"tenants";r=12;t=3`), and how many requests its level can still take at a time,
    /// with the unit `concurrent-requests`. It tells clients how busy the service is.
    #[doc(alias = "ratelimit")]
    pub fn rate_limit_fields(mut self) -> Self {
        self.rules.settings.tells_rates = true;
        self
    }

    /// The form of the response to a rejected request. [`on_refusal`](Self::on_refusal) takes its place, and the other way
    /// round: the last call counts.
    pub fn rejection_form(mut self, form: RejectionForm) -> Self {
        self.rules.settings.refusals = Refusals::Own(form);
        self
    }

    /// Makes the responses to requests that do not get to the service, in an error format of your own: to those that are
    /// rejected (429), whose callers are not identified (401), or whose paths are malformed (400).
    ///
    /// Nothing is added to the response: set `Retry-After` yourself, or all headers of the layer with
    /// [`Rejected::set_headers`](crate::Rejected::set_headers). gRPC calls are not asked for, and get the gRPC status
    /// that they get without this.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::Anonymous;
    /// use evenkeel::service::Refusal;
    /// use http::Response;
    /// use http::header::{CONTENT_TYPE, RETRY_AFTER};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// // Problem details (RFC 9457).
    /// let layer = FlowControl::builder().build().layer(Anonymous).on_refusal(|refusal, parts| {
    ///     let mut response = Response::builder().status(refusal.status()).header(CONTENT_TYPE, "application/problem+json");
    ///     if let Some(time) = refusal.retry_after() {
    ///         response = response.header(RETRY_AFTER, time.as_secs());
    ///     }
    ///     let level = match refusal {
    ///         Refusal::Rejected(rejected) => Some(rejected.priority_level()),
    ///         _ => None,
    ///     };
    ///     let (status, instance) = (refusal.status().as_u16(), parts.uri.path());
    ///     let problem = serde_json::json!({
    ///         "title": refusal.to_string(), "status": status, "instance": instance, "priorityLevel": level,
    ///     });
    ///     response.body(problem.to_string()).expect("a valid response")
    /// });
    /// # }
    /// ```
    #[doc(alias = "on_reject")]
    #[doc(alias = "on_rejection")]
    #[doc(alias = "error_response")]
    pub fn on_refusal<T: Into<Bytes>>(
        mut self,
        respond: impl Fn(&Refusal, &Parts) -> Response<T> + Send + Sync + 'static,
    ) -> Self {
        let respond = move |refusal: &Refusal, parts: &Parts| respond(refusal, parts).map(Into::into);
        self.rules.settings.refusals = Refusals::Custom(Arc::new(respond));
        self
    }

    /// The same layer with a type that can be written down: see [`BoxedFlowLayer`]. Each request costs three calls through
    /// pointers more, and no allocation. Call it last: what the layer is told after that has types again.
    pub fn boxed(self) -> BoxedFlowLayer<H, D::Extra>
    where
        I: Identify + Send + Sync + 'static,
        D: Digest + Send + Sync + 'static,
        W: EstimateWork<D::Extra> + Send + Sync + 'static,
    {
        let Rules { identify, digest, work, settings } = self.rules;
        let (identify, work) = (Arc::new(BoxIdentify(identify)), Arc::new(BoxWork(work)));
        FlowLayer::new(Rules { identify, digest: digest.boxed(), work, settings })
    }
}

impl<S, I, D, W, H> Layer<S> for FlowLayer<I, D, W, H> {
    type Service = FlowService<S, I, D, W, H>;

    fn layer(&self, inner: S) -> Self::Service {
        FlowService::new(inner, self.rules.clone())
    }
}

/// For any types that identify, digest and estimate: closures cannot be shown.
impl<I, D, W, H> fmt::Debug for FlowLayer<I, D, W, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowLayer").field("rules", &self.rules).finish()
    }
}

impl<I, D, W, H> Clone for FlowLayer<I, D, W, H> {
    fn clone(&self) -> Self {
        Self::new(self.rules.clone())
    }
}
