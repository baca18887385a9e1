//! `FlowFuture`: a request from its arrival to the head of its response.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use evenkeel_engine::queue_set::Rejection;
use http::{Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::control::admit::Waiting;
use crate::control::permit::{HeldPermit, Permit, SharedPermit};
use crate::layer::admitted::RequestHead;
use crate::layer::body::{FlowBody, Held};
use crate::layer::cost;
use crate::layer::occupancy::Occupancy;
use crate::layer::refusal::Refusals;
use crate::layer::response::set_wait;
use crate::layer::revoked::{self, RevokedEnd};
use crate::layer::rules::LayerSettings;

pin_project! {
    /// The response to a request. Made by [`FlowService`](crate::service::FlowService).
    ///
    /// `S` is the inner service, `Q` what it is called with, and `B` the body of its responses.
    ///
    /// Dropping it cancels the request: it leaves its queue, or its seats are free. That is right for
    /// handlers, which stop when their future is dropped. Where the work goes on, keep the seats until it has ended: with
    /// [`take_permit`](Self::take_permit) outside of the layer, with
    /// [`share_permits`](crate::FlowLayer::share_permits) inside of it.
    #[must_use = "the request is cancelled when this future is dropped"]
    pub struct FlowFuture<S, Q, B>
    where
        S: Service<Q>,
    {
        #[pin]
        stage: Stage<S, S::Future, S::Error, Q, B>,
        held: Held,
        course: Course,
    }

    impl<S, Q, B> PinnedDrop for FlowFuture<S, Q, B>
    where
        S: Service<Q>,
    {
        fn drop(this: Pin<&mut Self>) {
            // The seats of a service that panics have been taken out.
            if let Stage::Running { .. } = &this.stage {
                this.held.mark_left();
            }
        }
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, F, E, Q, B> {
        /// The request waits to be let in. Boxed, as everything that holds the request: the future of a request that runs at once
        /// is small, and cheap to move.
        Waiting { waiting: Box<WaitingCall<S, Q>> },
        /// The request has been let in, or is not limited, and the service is not ready.
        Readying { call: Option<Box<Call<S, Q>>> },
        /// The service works on it.
        Running { #[pin] future: F },
        /// The service has failed before it got the request.
        Failed { error: Option<E> },
        /// The request does not get to the service.
        Refused { response: Option<Box<Response<FlowBody<B>>>> },
        /// The response is there.
        Done,
    }
}

/// A call that waits for its permit.
struct WaitingCall<S, Q> {
    waiting: Waiting,
    call: Option<Box<Call<S, Q>>>,
    /// Tells the service how long the request has waited, if it wants to know.
    note_waited: fn(&mut Q, Duration),
    refusals: Refusals,
    shares_permit: bool,
}

/// How a request goes on once it has its response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    pub(crate) occupancy: Occupancy,
    /// Whether its method is CONNECT: a successful response opens a tunnel then, as a 101 does for others.
    pub(crate) is_connect: bool,
    /// Whether the response tells how long the request has waited.
    pub(crate) tells_waits: bool,
}

/// A call that is to be made.
pub(crate) struct Call<S, Q> {
    pub(crate) service: S,
    pub(crate) request: Q,
}

// === impl FlowFuture ===

impl<S, Q, B> FlowFuture<S, Q, B>
where
    S: Service<Q>,
{
    /// A request that waits.
    pub(crate) fn waiting(
        call: Call<S, Q>,
        waiting: Waiting,
        note_waited: fn(&mut Q, Duration),
        course: Course,
        held: Held,
        settings: &LayerSettings,
    ) -> Self {
        let (refusals, shares_permit) = (settings.refusals.clone(), settings.shares_permits);
        let waiting = WaitingCall { waiting, call: Some(Box::new(call)), note_waited, refusals, shares_permit };
        Self { stage: Stage::Waiting { waiting: Box::new(waiting) }, held, course }
    }

    /// Whether the request has been let in and takes seats.
    pub fn has_permit(&self) -> bool {
        self.held.has_seats()
    }

    /// What the service will be called with, as long as the request waits to be let in.
    pub fn waiting_request(&self) -> Option<&Q> {
        match &self.stage {
            Stage::Waiting { waiting } => waiting.call.as_ref().map(|call| &call.request),
            _ => None,
        }
    }

    /// The time for the request is over, and this future is about to be dropped: if the request waits, it is counted as one that
    /// timed out, and not as one whose client has disconnected.
    pub fn expire(self: Pin<&mut Self>) {
        if let StageProjection::Waiting { waiting } = self.project().stage.project() {
            waiting.waiting.expire();
        }
    }

    /// With which reason a request that waits is counted as rejected if this future is dropped now.
    pub fn reason_if_dropped(&self) -> Option<Rejection> {
        match &self.stage {
            Stage::Waiting { waiting } => waiting.waiting.reason_if_dropped(),
            _ => None,
        }
    }

    /// Ready if the request is [told to end](crate::Permit::revoked), for code that [ends it](crate::FlowLayer::leave_revoked)
    /// instead of the layer. The task is woken when it is.
    #[inline]
    pub fn poll_revoked(&self, context: &Context<'_>) -> Poll<()> {
        self.held.poll_revoked(context)
    }

    /// The permit of a request that has been let in, until its response is there.
    pub fn permit(&self) -> Option<&Permit> {
        self.held.permit.as_deref()
    }

    /// Takes the seats away from a request that has been let in, to keep them for longer than this future. `None` if it
    /// waits, has its response, or takes no seats.
    pub fn take_permit(self: Pin<&mut Self>) -> Option<SharedPermit> {
        self.project().held.take_seats()
    }

    /// A request that has been let in, or needs not be.
    #[inline]
    pub(crate) fn started(mut service: S, request: Q, mut held: Held, course: Course) -> Self {
        held.start();
        // No waker is needed yet: a service that is not ready is asked again when the future is polled.
        let stage = match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Stage::Running { future: service.call(request) },
            Poll::Ready(Err(error)) => {
                held = Held::default();
                Stage::Failed { error: Some(error) }
            }
            Poll::Pending => Stage::Readying { call: Some(Box::new(Call { service, request })) },
        };
        Self { stage, held, course }
    }

    /// A request that does not get to the service.
    pub(crate) fn refused(response: Box<Response<FlowBody<B>>>) -> Self {
        let course = Course { occupancy: Occupancy::None, is_connect: false, tells_waits: false };
        Self { stage: Stage::Refused { response: Some(response) }, held: Held::default(), course }
    }
}

impl<S, Q, B> Future for FlowFuture<S, Q, B>
where
    S: Service<Q, Response = Response<B>>,
    Q: RequestHead,
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
                        if held.revoked_end == RevokedEnd::GoesOn || held.poll_revoked(context).is_pending() {
                            *this.held = held;
                            return Poll::Pending;
                        }
                        // The service stops before its seats are given back.
                        this.stage.set(Stage::Done);
                        drop(held);
                        return Poll::Ready(Ok(revoked::response()));
                    };
                    let response = match result {
                        Ok(response) => Ok(finish(response, held, *this.course)),
                        Err(error) => {
                            held.mark_failed();
                            Err(error)
                        }
                    };
                    this.stage.set(Stage::Done);
                    return Poll::Ready(response);
                }
                StageProjection::Waiting { waiting } => match ready!(Pin::new(&mut waiting.waiting).poll(context)) {
                    Ok(permit) => {
                        let mut call = waiting.call.take();
                        if let Some(call) = &mut call {
                            (waiting.note_waited)(&mut call.request, permit.waited());
                        }
                        this.held.permit = Some(match &mut call {
                            Some(call) if waiting.shares_permit => share(&mut call.request, permit),
                            _ => HeldPermit::Own(permit),
                        });
                        this.held.start();
                        Stage::Readying { call }
                    }
                    Err(rejected) => {
                        let call = waiting.call.take();
                        let parts = call.map(|call| call.request.into_parts());
                        let mut response = parts.map(|parts| waiting.refusals.respond(*rejected, &parts));
                        if let (Some(response), Some(fields)) = (&mut response, this.held.rate_fields.take()) {
                            fields.set(response.headers_mut());
                        }
                        Stage::Refused { response }
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
                    Some(response) => return Poll::Ready(Ok(*response)),
                    None => return Poll::Pending,
                },
                StageProjection::Done => return Poll::Pending,
            };
            this.stage.set(next);
        }
    }
}

// === impl Call ===

impl<S: Service<Q>, Q> Call<S, Q> {
    /// Makes the call to a service that has said that it is ready.
    #[inline]
    fn make(mut self) -> S::Future {
        self.service.call(self.request)
    }
}

impl<S: Service<Q>, Q, B> fmt::Debug for FlowFuture<S, Q, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowFuture").field("held", &self.held).finish_non_exhaustive()
    }
}

/// Gives the service a share of the permit of its request.
pub(crate) fn share(request: &mut impl RequestHead, permit: Permit) -> HeldPermit {
    let shared = SharedPermit::from(permit);
    request.extensions_mut().insert(shared.clone());
    HeldPermit::Shared(shared)
}

/// An extension of a response: whatever its status, it does not say that the service has failed. A handler adds it to a response with 429 that
/// has to do with its client alone, for example.
#[derive(Debug, Clone, Copy, Default)]
pub struct NotFailed;

/// Whether a service that responds with this status has not done what was asked, perhaps for want of resources (AL-5).
fn is_failure(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The response of the service, with its headers and its seats.
fn finish<B: Body>(mut response: Response<B>, mut held: Held, course: Course) -> Response<FlowBody<B>> {
    if let Some(uids) = held.permit.as_ref().and_then(|permit| permit.uid_headers()) {
        uids.set(response.headers_mut());
    }
    if let Some(permit) = &held.permit
        && let Some(account) = permit.account()
    {
        cost::note_response(permit, account, &mut response);
    }
    if let Some(fields) = held.rate_fields.take() {
        fields.set(response.headers_mut());
    }
    if course.tells_waits
        && let Some(permit) = &held.permit
        && let Some(position) = permit.position()
    {
        set_wait(response.headers_mut(), position, permit.waited());
    }
    if is_failure(response.status()) && response.extensions().get::<NotFailed>().is_none() {
        held.mark_failed();
    }
    // A connection after a switch of protocols lasts as long as a watch, whichever request asked for it.
    let status = response.status();
    if status == StatusCode::SWITCHING_PROTOCOLS || (course.is_connect && status.is_success()) {
        let long_running = held.permit.take().and_then(|permit| permit.begin_long_running());
        return response.map(|body| FlowBody::of_service(body, held).upgraded(long_running));
    }
    if course.occupancy == Occupancy::ToTheHeaders {
        held.long_running = held.permit.take().and_then(|permit| permit.take_long_running());
    } else if let Some(permit) = &held.permit
        && permit.seats() > 0
    {
        // The service has not agreed to an upgrade, so it is an ordinary request after all.
        drop(permit.take_long_running());
    }
    held.revoked_end = match &held.permit {
        Some(permit) if permit.is_revocable() => held.revoked_end.of_response(response.headers(), response.body()),
        // Such a request is never told to end, and its headers need not be looked at.
        _ => RevokedEnd::GoesOn,
    };
    response.map(|body| FlowBody::of_service(body, held))
}
