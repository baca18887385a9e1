//! `ApiService`: serves a connection: authenticates, interprets the target, admits, and calls the API.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use evenkeel::FlowControl;
use evenkeel::identify::{Identify, Unidentified};
use evenkeel::service::{FlowBody, FlowService, RejectionForm};
use evenkeel::work::KubernetesWork;
use evenkeel_engine::User;
use evenkeel_engine::digest::DigestError;
use http::header::X_CONTENT_TYPE_OPTIONS;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Either;
use tower_layer::Layer;
use tower_service::Service;

use crate::access::effective_user;
use crate::denials::{Denial, Denials};
use crate::failure::Failure;
use crate::http::{Api, ApiBody, NO_SNIFFING, discard, reject};
use crate::in_flight::ConnectionInFlight;
use crate::request_context::RequestContext;
use crate::target::{Target, TargetDigest};
use crate::websocket::accept_bearer_protocol;

/// Serves the requests of one connection.
#[derive(Debug)]
pub struct ApiService<I> {
    identity: Arc<I>,
    in_flight: ConnectionInFlight,
    denials: Denials,
    limited: LimitedApi,
}

/// The API behind its own flow control. It is made once, and each connection has a clone.
pub(crate) type LimitedApi = FlowService<Unlimited, KnownUser, TargetDigest, KubernetesWork>;

/// The API for requests that have a seat.
#[derive(Debug, Clone)]
pub(crate) struct Unlimited(Api);

/// Reads the user who was identified before.
pub(crate) type KnownUser = fn(&Parts) -> Result<Arc<User>, Unidentified>;

/// The result of a request.
type ServiceResult = Result<Response<Either<FlowBody<ApiBody>, ApiBody>>, Infallible>;

/// Puts the API behind its own flow control.
pub(crate) fn limited(api: &Api, flow: &FlowControl, work: KubernetesWork) -> LimitedApi {
    let known: KnownUser = |parts| {
        let context = parts.extensions.get::<RequestContext>().ok_or_else(Unidentified::unauthorized)?;
        Ok(Arc::clone(&context.user))
    };
    // The line of text that a kube-apiserver sends, which its clients know (HF-12).
    let layer = flow.layer(known).digest(TargetDigest).work(work).rejection_form(RejectionForm::PlainText);
    layer.layer(Unlimited(api.clone()))
}

// === impl ApiService ===

impl<I> ApiService<I> {
    pub(crate) fn new(limited: LimitedApi, in_flight: ConnectionInFlight, denials: Denials, identity: I) -> Self {
        Self { limited, identity: Arc::new(identity), in_flight, denials }
    }

    /// The context of a request before it waits for a seat.
    fn context(&self, parts: &Parts) -> Result<RequestContext, Failure>
    where
        I: Identify,
    {
        let user = self.identity.identify(parts).map_err(|refused| match refused.status {
            StatusCode::UNAUTHORIZED => {
                self.denials.unauthenticated();
                Failure::unauthorized()
            }
            StatusCode::TOO_MANY_REQUESTS => Failure::too_many(refused.message),
            _ => Failure::bad_request(refused.message),
        })?;
        let sender = user;
        let user = effective_user(Arc::clone(&sender), &parts.headers).inspect_err(|failure| {
            if failure.status == StatusCode::FORBIDDEN {
                self.denials.forbidden(Denial::Impersonation, parts, &sender);
            }
        })?;
        let impersonator = (!Arc::ptr_eq(&user, &sender)).then_some(sender);
        let target = Target::of(parts).map_err(|error| match error {
            // Such a request cannot be interpreted, so that it is rejected before its user is authorized (API-100).
            DigestError::NoResource { .. } => Failure::no_resource(),
            other => Failure::bad_request(other.to_string()),
        })?;
        Ok(RequestContext { user, impersonator, target, in_flight: self.in_flight.clone() })
    }
}

impl<I> Clone for ApiService<I> {
    fn clone(&self) -> Self {
        let Self { identity, in_flight, denials, limited } = self;
        let (in_flight, denials, limited) = (in_flight.clone(), denials.clone(), limited.clone());
        Self { identity: Arc::clone(identity), in_flight, denials, limited }
    }
}

impl<I, B> Service<Request<B>> for ApiService<I>
where
    I: Identify,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Either<FlowBody<ApiBody>, ApiBody>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = ServiceResult> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        accept_bearer_protocol(&mut parts.headers);
        match self.context(&parts) {
            Ok(context) => {
                parts.extensions.insert(context);
                let response = self.limited.call(Request::from_parts(parts, body));
                Box::pin(async move {
                    let mut response = response.await?.map(Either::Left);
                    // The flow control itself responds to requests that it rejects.
                    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
                    Ok(response)
                })
            }
            Err(failure) => {
                let response = reject(&parts, &failure, &[]).map(Either::Right);
                Box::pin(async move {
                    discard(&parts.headers, pin!(body)).await;
                    Ok(response)
                })
            }
        }
    }
}

// === impl Unlimited ===

impl<B> Service<Request<B>> for Unlimited
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ApiBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.0.clone();
        Box::pin(async move { Ok(api.respond(request).await) })
    }
}
