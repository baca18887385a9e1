//! `FlowService`: a service whose requests are let in by a flow control.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use evenkeel_engine::WorkEstimate;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::control::permit::HeldPermit;
use crate::layer::body::{FlowBody, Held};
use crate::layer::digest::{Digest, PresetDigest};
use crate::layer::future::{Call, FlowFuture};
use crate::layer::identify::Identify;
use crate::layer::occupancy::Occupancy;
use crate::layer::rules::{Rules, Verdict};
use crate::layer::work::HttpWork;

/// A service whose requests are let in by a flow control. Made by [`FlowLayer`](crate::FlowLayer).
///
/// It is always ready: a request has to arrive before it is known where it belongs and whether it has to wait. A clone of
/// the service inside is asked whether it is ready when the request has been let in, and not before, so that requests
/// that wait keep nothing of it. If it is ready at once, it gets the request at once, and otherwise when the future is
/// polled.
#[derive(Debug)]
pub struct FlowService<S, I, D = PresetDigest, W = WorkEstimate> {
    inner: S,
    rules: Arc<Rules<I, D, W>>,
}

// === impl FlowService ===

impl<S, I, D, W> FlowService<S, I, D, W> {
    pub(crate) fn new(inner: S, rules: Rules<I, D, W>) -> Self {
        Self { inner, rules: Arc::new(rules) }
    }

    /// The service inside.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }
}

impl<S, I, D, W, A, B> Service<Request<A>> for FlowService<S, I, D, W>
where
    S: Service<Request<A>, Response = Response<B>> + Clone,
    B: Body<Data = Bytes>,
    I: Identify,
    D: Digest,
    W: HttpWork,
{
    type Response = Response<FlowBody<B>>;
    type Error = S::Error;
    type Future = FlowFuture<S, A, B>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let verdict = self.rules.judge(&parts);
        let mut call = Call { service: self.inner.clone(), parts, body };
        match verdict {
            Verdict::Arrived { admit, occupancy, watch } => {
                let (form, shares_permit) = (self.rules.rejection_form, self.rules.shares_permits);
                match admit.into_permit() {
                    Ok(permit) => {
                        let permit = if shares_permit { call.share(permit) } else { HeldPermit::Own(permit) };
                        FlowFuture::started(call, Held { permit: Some(permit), watch }, occupancy)
                    }
                    Err(admit) => FlowFuture::arrived(call, admit, occupancy, watch, form, shares_permit),
                }
            }
            Verdict::Unlimited => FlowFuture::started(call, Held::default(), Occupancy::None),
            Verdict::Refused(response) => FlowFuture::refused(*response),
        }
    }
}

impl<S: Clone, I, D, W> Clone for FlowService<S, I, D, W> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), rules: Arc::clone(&self.rules) }
    }
}
