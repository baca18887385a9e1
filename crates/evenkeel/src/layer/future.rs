//! `FlowFuture`: a request on its way: it waits, gets to the service, and is answered.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::control::admit::Admit;
use crate::control::permit::{HeldPermit, Permit, SharedPermit};
use crate::layer::body::{FlowBody, Held};
use crate::layer::occupancy::Occupancy;
use crate::layer::response::{self, RejectionForm};
use crate::layer::uid_headers::UidHeaders;
use crate::layer::work::Watch;

pin_project! {
    /// The answer to a request. Made by [`FlowService`](crate::FlowService).
    ///
    /// Dropping it gives the request up, wherever it is: it leaves its queue, or its seats are free. That is right for
    /// handlers, which stop when their future is dropped. Where the work goes on, keep the seats until it has ended: with
    /// [`take_permit`](Self::take_permit) outside of the layer, with
    /// [`share_permits`](crate::FlowLayer::share_permits) inside of it.
    #[must_use = "the request is given up when this future is dropped"]
    pub struct FlowFuture<S, A, B>
    where
        S: Service<Request<A>>,
    {
        #[pin]
        stage: Stage<S, S::Future, S::Error, A, B>,
        held: Held,
        occupancy: Occupancy,
        rejection_form: RejectionForm,
        shares_permit: bool,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, F, E, A, B> {
        /// It waits to be let in.
        Waiting { #[pin] admit: Admit, call: Option<Call<S, A>> },
        /// It has been let in, or needs not be, and the service is not ready.
        Readying { call: Option<Call<S, A>> },
        /// The service works on it.
        Running { #[pin] future: F },
        /// The service has failed before it got the request.
        Failed { error: Option<E> },
        /// It does not get to the service.
        Refused { response: Option<Response<FlowBody<B>>> },
        /// It has been answered.
        Done,
    }
}

/// A call that is to be made.
pub(crate) struct Call<S, A> {
    pub(crate) service: S,
    pub(crate) parts: Parts,
    pub(crate) body: A,
}

// === impl FlowFuture ===

impl<S, A, B> FlowFuture<S, A, B>
where
    S: Service<Request<A>>,
{
    /// A request that waits.
    pub(crate) fn arrived(
        call: Call<S, A>,
        admit: Admit,
        occupancy: Occupancy,
        watch: Option<Box<Watch>>,
        rejection_form: RejectionForm,
        shares_permit: bool,
    ) -> Self {
        let stage = Stage::Waiting { admit, call: Some(call) };
        Self { stage, held: Held { permit: None, watch }, occupancy, rejection_form, shares_permit }
    }

    /// Whether the request has been let in and takes seats.
    pub fn has_permit(&self) -> bool {
        self.held.permit.is_some()
    }

    /// Takes the seats away from a request that has been let in, to keep them for longer than this future. `None` if it
    /// waits, has been answered, or takes no seats.
    pub fn take_permit(self: Pin<&mut Self>) -> Option<SharedPermit> {
        self.project().held.permit.take().map(HeldPermit::into_shared)
    }

    /// A request that has been let in, or needs not be.
    #[inline]
    pub(crate) fn started(mut call: Call<S, A>, mut held: Held, occupancy: Occupancy) -> Self {
        held.start_watch();
        // Nobody is to be woken yet: a service that is not ready is asked again when the future is polled.
        let stage = match call.service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Stage::Running { future: call.make() },
            Poll::Ready(Err(error)) => {
                held = Held::default();
                Stage::Failed { error: Some(error) }
            }
            Poll::Pending => Stage::Readying { call: Some(call) },
        };
        Self { stage, held, occupancy, rejection_form: RejectionForm::default(), shares_permit: false }
    }

    /// A request that does not get to the service.
    pub(crate) fn refused(response: Response<FlowBody<B>>) -> Self {
        let stage = Stage::Refused { response: Some(response) };
        let (held, occupancy, rejection_form) = (Held::default(), Occupancy::None, RejectionForm::default());
        Self { stage, held, occupancy, rejection_form, shares_permit: false }
    }
}

impl<S, A, B> Future for FlowFuture<S, A, B>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Body<Data = Bytes>,
{
    type Output = Result<Response<FlowBody<B>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.stage.as_mut().project() {
                StageProjection::Running { future } => {
                    // Taken out whenever the service is asked something, so that its panic frees the seats.
                    let held = std::mem::take(this.held);
                    let Poll::Ready(result) = future.poll(context) else {
                        *this.held = held;
                        return Poll::Pending;
                    };
                    let response = result.map(|response| finish(response, held, *this.occupancy));
                    this.stage.set(Stage::Done);
                    return Poll::Ready(response);
                }
                StageProjection::Waiting { admit, call } => match ready!(admit.poll(context)) {
                    Ok(permit) => {
                        let mut call = call.take();
                        this.held.permit = Some(match &mut call {
                            Some(call) if *this.shares_permit => call.share(permit),
                            _ => HeldPermit::Own(permit),
                        });
                        this.held.start_watch();
                        Stage::Readying { call }
                    }
                    Err(rejected) => {
                        let answer = |Call { parts, .. }: Call<S, A>| {
                            let mut response = response::rejection(&rejected, *this.rejection_form, &parts.headers);
                            // For whoever is around this service, to tell it from an answer of the service.
                            response.extensions_mut().insert(rejected);
                            response
                        };
                        Stage::Refused { response: call.take().map(answer) }
                    }
                },
                StageProjection::Readying { call } => {
                    let Some(mut asked) = call.take() else { return Poll::Pending };
                    let held = std::mem::take(this.held);
                    match asked.service.poll_ready(context) {
                        Poll::Ready(Ok(())) => {
                            let future = asked.make();
                            *this.held = held;
                            Stage::Running { future }
                        }
                        Poll::Ready(Err(error)) => Stage::Failed { error: Some(error) },
                        Poll::Pending => {
                            *call = Some(asked);
                            *this.held = held;
                            return Poll::Pending;
                        }
                    }
                }
                StageProjection::Failed { error } => match error.take() {
                    Some(error) => return Poll::Ready(Err(error)),
                    None => return Poll::Pending,
                },
                StageProjection::Refused { response } => match response.take() {
                    Some(response) => return Poll::Ready(Ok(response)),
                    None => return Poll::Pending,
                },
                StageProjection::Done => return Poll::Pending,
            };
            this.stage.set(next);
        }
    }
}

// === impl Call ===

impl<S, A> Call<S, A> {
    /// Gives the service a share of the permit.
    pub(crate) fn share(&mut self, permit: Permit) -> HeldPermit {
        let shared = SharedPermit::from(permit);
        self.parts.extensions.insert(shared.clone());
        HeldPermit::Shared(shared)
    }
}

impl<S: Service<Request<A>>, A> Call<S, A> {
    /// Makes the call to a service that has said that it is ready.
    #[inline]
    fn make(mut self) -> S::Future {
        self.service.call(Request::from_parts(self.parts, self.body))
    }
}

impl<S: Service<Request<A>>, A, B> fmt::Debug for FlowFuture<S, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowFuture").field("held", &self.held).finish_non_exhaustive()
    }
}

/// The answer of the service with what goes with it.
fn finish<B: Body>(mut response: Response<B>, mut held: Held, occupancy: Occupancy) -> Response<FlowBody<B>> {
    if let Some(permit) = &held.permit {
        let uids: &UidHeaders = permit.uid_headers();
        uids.set(response.headers_mut());
    }
    // What comes after a switch of protocols is as long as a watch, whoever it was that asked for it.
    if occupancy == Occupancy::ToTheHeaders || response.status() == StatusCode::SWITCHING_PROTOCOLS {
        held.permit = None;
    }
    response.map(|body| FlowBody::of_service(body, held))
}
