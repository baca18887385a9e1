//! `FlowService`: a service whose requests are let in by a flow control.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::digest::DigestError;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::control::admit::ArrivalOutcome;
use crate::control::permit::HeldPermit;
use crate::control::work::EstimateWork;
use crate::layer::admitted::{HandOver, RequestOnly};
use crate::layer::body::{FlowBody, Held};
use crate::layer::digest::{Digest, Digested, PresetDigest};
use crate::layer::future::{Call, Course, FlowFuture, share};
use crate::layer::head::PartsHead;
use crate::layer::identify::Identify;
use crate::layer::occupancy::Occupancy;
use crate::layer::revoked::RevokedEnd;
use crate::layer::rules::{Rules, Verdict};

/// A service whose requests are let in by a flow control. Made by [`FlowLayer`](crate::FlowLayer).
///
/// It is always ready: a request has to arrive before it is known where it belongs and whether it has to wait. A clone of
/// the inner service is asked whether it is ready when the request has been let in, and not before, so that requests
/// that wait keep nothing of it. If it is ready at once, it gets the request at once, and otherwise when the future is
/// polled.
pub struct FlowService<S, I, D = PresetDigest, W = WorkEstimate, H = RequestOnly> {
    inner: S,
    rules: Arc<Rules<I, D, W>>,
    hand_over: PhantomData<fn() -> H>,
}

// === impl FlowService ===

impl<S, I, D, W, H> FlowService<S, I, D, W, H> {
    pub(crate) fn new(inner: S, rules: Rules<I, D, W>) -> Self {
        Self { inner, rules: Arc::new(rules), hand_over: PhantomData }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Lets a request in like [`call`](Service::call), with an identity that comes with it. So one service can serve many
    /// connections, each with an identity of its own: see
    /// [`FlowControl::layer_without_identity`](crate::FlowControl::layer_without_identity).
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::identify::authenticated;
    /// use http::{Request, Response};
    /// use http_body_util::Empty;
    /// use tower::{Layer, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let hello = service_fn(async |_: Request<()>| Ok::<_, std::io::Error>(Response::new(Empty::<bytes::Bytes>::new())));
    /// let service = FlowControl::builder().build().layer_without_identity().layer(hello);
    /// let alice = authenticated("alice", ["staff"]);
    /// let response = service.call_as(&|_: &_| alice.clone(), Request::new(())).await.unwrap();
    /// assert_eq!(response.status(), 200);
    /// # }
    /// ```
    pub fn call_as<A, B>(&self, identify: &impl Identify, request: Request<A>) -> FlowFuture<S, H::Request, B>
    where
        H: HandOver<A, D::Extra>,
        S: Service<H::Request, Response = Response<B>> + Clone,
        B: Body<Data = Bytes>,
        D: Digest,
        W: EstimateWork<D::Extra>,
    {
        let (parts, body) = request.into_parts();
        let verdict = self.rules.judge::<H, A, B>(identify, self.rules.digested(&parts), &PartsHead(&parts));
        self.proceed(verdict, parts, body)
    }

    /// Lets a request in like [`call_as`](Self::call_as), where the caller has digested it already, with the digest of the
    /// layer or with another that finds the same.
    pub fn call_digested<A, B>(
        &self,
        identify: &impl Identify,
        digested: Result<Digested<'_, D::Extra>, DigestError>,
        request: Request<A>,
    ) -> FlowFuture<S, H::Request, B>
    where
        H: HandOver<A, D::Extra>,
        S: Service<H::Request, Response = Response<B>> + Clone,
        B: Body<Data = Bytes>,
        D: Digest,
        W: EstimateWork<D::Extra>,
    {
        let (parts, body) = request.into_parts();
        let verdict = self.rules.judge::<H, A, B>(identify, digested, &PartsHead(&parts));
        self.proceed(verdict, parts, body)
    }

    #[inline]
    fn proceed<A, B>(
        &self,
        verdict: Verdict<H::User, D::Extra, B>,
        parts: Parts,
        body: A,
    ) -> FlowFuture<S, H::Request, B>
    where
        H: HandOver<A, D::Extra>,
        S: Service<H::Request, Response = Response<B>> + Clone,
        B: Body<Data = Bytes>,
        D: Digest,
    {
        let settings = &self.rules.settings;
        let is_connect = parts.method == Method::CONNECT;
        let tells_waits = settings.tells_waits;
        match verdict {
            Verdict::Arrived { place, occupancy, watch, rate_fields, user, extra } => match place {
                ArrivalOutcome::Started(permit) => {
                    let place = || Some((permit.class(), permit.seats(), permit.queue()));
                    let mut request = H::hand_over(Request::from_parts(parts, body), user, place, extra);
                    let permit =
                        if settings.shares_permits { share(&mut request, permit) } else { HeldPermit::Own(permit) };
                    let revoked_end = RevokedEnd::at_first(settings.ends_revoked);
                    let held = Held { permit: Some(permit), watch, rate_fields, long_running: None, revoked_end };
                    FlowFuture::started(
                        self.inner.clone(),
                        request,
                        held,
                        Course { occupancy, is_connect, tells_waits },
                    )
                }
                ArrivalOutcome::Waiting(waiting) => {
                    let request =
                        H::hand_over(Request::from_parts(parts, body), user, || waiting.class_seats_and_queue(), extra);
                    let call = Call { service: self.inner.clone(), request };
                    let course = Course { occupancy, is_connect, tells_waits };
                    let revoked_end = RevokedEnd::at_first(settings.ends_revoked);
                    let held = Held { watch, rate_fields, revoked_end, ..Held::default() };
                    FlowFuture::waiting(call, waiting, H::note_waited, course, held, settings)
                }
                ArrivalOutcome::Rejected(rejected) => {
                    let mut response = settings.refusals.respond(*rejected, &parts);
                    if let Some(fields) = rate_fields {
                        fields.set(response.headers_mut());
                    }
                    FlowFuture::refused(response)
                }
            },
            Verdict::Unlimited { user, extra } => {
                let request = H::hand_over(Request::from_parts(parts, body), user, || None, extra);
                let course = Course { occupancy: Occupancy::None, is_connect, tells_waits };
                FlowFuture::started(self.inner.clone(), request, Held::default(), course)
            }
            Verdict::Refused(response) => FlowFuture::refused(response),
        }
    }
}

impl<S, I, D, W, H, A, B> Service<Request<A>> for FlowService<S, I, D, W, H>
where
    H: HandOver<A, D::Extra>,
    S: Service<H::Request, Response = Response<B>> + Clone,
    B: Body<Data = Bytes>,
    I: Identify,
    D: Digest,
    W: EstimateWork<D::Extra>,
{
    type Response = Response<FlowBody<B>>;
    type Error = S::Error;
    type Future = FlowFuture<S, H::Request, B>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        self.call_as(&*self.rules.identify, request)
    }
}

impl<S: fmt::Debug, I, D, W, H> fmt::Debug for FlowService<S, I, D, W, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowService").field("inner", &self.inner).field("rules", &self.rules).finish()
    }
}

impl<S: Clone, I, D, W, H> Clone for FlowService<S, I, D, W, H> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), rules: Arc::clone(&self.rules), hand_over: PhantomData }
    }
}
