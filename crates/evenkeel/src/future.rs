//! `FlowFuture`: a request on its way: it waits, gets to the service, and is answered.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::admit::Admit;
use crate::body::{FlowBody, Held};
use crate::occupancy::Occupancy;
use crate::response::{self, RejectionForm};
use crate::uid_headers::UidHeaders;
use crate::work::Watch;

pin_project! {
    /// The answer to a request. Made by [`FlowService`](crate::FlowService).
    ///
    /// Dropping it gives the request up, wherever it is: it leaves its queue, or its seats are free.
    #[must_use = "the request is given up when this future is dropped"]
    pub struct FlowFuture<S, A, B>
    where
        S: Service<Request<A>>,
    {
        #[pin]
        stage: Stage<S, S::Future, A, B>,
        held: Held,
        occupancy: Occupancy,
        rejection_form: RejectionForm,
    }
}

pin_project! {
    #[project = StageProjection]
    enum Stage<S, F, A, B> {
        /// It waits to be let in.
        Waiting { #[pin] admit: Admit, call: Option<Call<S, A>> },
        /// It has been let in, or needs not be, and the service is not ready.
        Readying { call: Option<Call<S, A>> },
        /// The service works on it.
        Running { #[pin] future: F },
        /// It does not get to the service.
        Refused { response: Option<Response<FlowBody<B>>> },
        /// It has been answered.
        Done,
    }
}

/// A call that is to be made.
struct Call<S, A> {
    service: S,
    request: Request<A>,
}

// === impl FlowFuture ===

impl<S, A, B> FlowFuture<S, A, B>
where
    S: Service<Request<A>>,
{
    pub(crate) fn arrived(
        service: S,
        request: Request<A>,
        admit: Admit,
        occupancy: Occupancy,
        watch: Option<Watch>,
        rejection_form: RejectionForm,
    ) -> Self {
        let stage = Stage::Waiting { admit, call: Some(Call { service, request }) };
        Self { stage, held: Held { permit: None, watch }, occupancy, rejection_form }
    }

    pub(crate) fn unlimited(service: S, request: Request<A>) -> Self {
        Self::at(Stage::Readying { call: Some(Call { service, request }) })
    }

    pub(crate) fn refused(response: Response<FlowBody<B>>) -> Self {
        Self::at(Stage::Refused { response: Some(response) })
    }

    fn at(stage: Stage<S, S::Future, A, B>) -> Self {
        Self { stage, held: Held::default(), occupancy: Occupancy::None, rejection_form: RejectionForm::default() }
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
                StageProjection::Waiting { admit, call } => match ready!(admit.poll(context)) {
                    Ok(permit) => {
                        if let Some(watch) = &mut this.held.watch {
                            watch.start();
                        }
                        this.held.permit = Some(permit);
                        Stage::Readying { call: call.take() }
                    }
                    Err(rejected) => {
                        let answer = |Call { request, .. }: Call<S, A>| {
                            let mut response = response::rejection(&rejected, *this.rejection_form, request.headers());
                            // For whoever is around this service, to tell it from an answer of the service.
                            response.extensions_mut().insert(rejected);
                            response
                        };
                        Stage::Refused { response: call.take().map(answer) }
                    }
                },
                StageProjection::Readying { call } => {
                    let Some(Call { mut service, request }) = call.take() else { return Poll::Pending };
                    // Taken out whenever the service is asked something, so that its panic frees the seats.
                    let held = std::mem::take(this.held);
                    let readiness = service.poll_ready(context);
                    if readiness.is_pending() {
                        *call = Some(Call { service, request });
                        *this.held = held;
                        return Poll::Pending;
                    }
                    if let Poll::Ready(Err(error)) = readiness {
                        this.stage.set(Stage::Done);
                        return Poll::Ready(Err(error));
                    }
                    let future = service.call(request);
                    *this.held = held;
                    Stage::Running { future }
                }
                StageProjection::Running { future } => {
                    let held = std::mem::take(this.held);
                    let Poll::Ready(result) = future.poll(context) else {
                        *this.held = held;
                        return Poll::Pending;
                    };
                    let response = result.map(|response| finish(response, held, *this.occupancy));
                    this.stage.set(Stage::Done);
                    return Poll::Ready(response);
                }
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
