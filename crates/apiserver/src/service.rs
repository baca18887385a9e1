//! `ApiService`: who is calling, as whom, whether there is a seat, and then the API.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use evenkeel::identify::Unidentified;
use evenkeel::{FlowBody, FlowControl, FlowService, Identify, KubernetesWork, PresetDigest, RejectionForm};
use evenkeel_engine::User;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use http_body_util::Either;
use tower_layer::Layer;
use tower_service::Service;

use crate::access::effective_user;
use crate::failure::Failure;
use crate::http::{Api, ApiBody, discard};
use crate::in_flight::ConnectionInFlight;
use crate::route::names_nothing;
use crate::websocket::accept_bearer_protocol;

/// Serves the requests of one connection.
#[derive(Debug)]
pub struct ApiService<I> {
    api: Api,
    identity: Arc<I>,
    in_flight: ConnectionInFlight,
    limited: FlowService<Unlimited, KnownUser, PresetDigest, KubernetesWork>,
}

/// The API for those who have a seat.
#[derive(Debug, Clone)]
pub(crate) struct Unlimited(Api);

/// Who was found to be calling.
type KnownUser = fn(&Parts) -> Result<Arc<User>, Unidentified>;

/// What a request ends with.
type ServiceResult = Result<Response<Either<FlowBody<ApiBody>, ApiBody>>, Infallible>;

// === impl ApiService ===

impl<I> ApiService<I> {
    pub(crate) fn new(api: Api, flow: &FlowControl, work: KubernetesWork, identity: I) -> Self {
        let known: KnownUser =
            |parts| parts.extensions.get::<Arc<User>>().cloned().ok_or_else(Unidentified::unauthorized);
        // The line of text that a kube-apiserver sends, which its clients know (HF-12).
        let layer = flow.layer(known).work(work).rejection_form(RejectionForm::PlainText);
        let in_flight = api.in_flight().connection();
        Self { limited: layer.layer(Unlimited(api.clone())), api, identity: Arc::new(identity), in_flight }
    }
}

impl<I> Clone for ApiService<I> {
    fn clone(&self) -> Self {
        Self {
            api: self.api.clone(),
            identity: Arc::clone(&self.identity),
            in_flight: self.in_flight.clone(),
            limited: self.limited.clone(),
        }
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
        let user = self.identity.identify(&parts).map_err(|refused| match refused.status {
            StatusCode::UNAUTHORIZED => Failure::unauthorized(),
            _ => Failure::bad_request(refused.message),
        });
        let user = user.and_then(|user| effective_user(user, &parts.headers));
        let user =
            user.and_then(|user| if names_nothing(parts.uri.path()) { Err(Failure::no_resource()) } else { Ok(user) });
        match user {
            Ok(user) => {
                parts.extensions.insert(user);
                parts.extensions.insert(self.in_flight.clone());
                let response = self.limited.call(Request::from_parts(parts, body));
                Box::pin(async move { response.await.map(|response| response.map(Either::Left)) })
            }
            Err(failure) => {
                let response = self.api.refuse(&parts, &failure).map(Either::Right);
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
