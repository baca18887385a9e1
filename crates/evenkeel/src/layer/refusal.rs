//! `Refusal`: why a request does not get to the service, and what makes the response.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use evenkeel_engine::digest::DigestError;
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};

use crate::control::rejected::Rejected;
use crate::layer::body::FlowBody;
use crate::layer::grpc::is_grpc;
use crate::layer::identify::Unidentified;
use crate::layer::response::{self, RejectionForm};

/// Why a request does not get to the service: what [`FlowLayer::on_refusal`](crate::FlowLayer::on_refusal) makes a response
/// of.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The flow control has rejected it: 429.
    #[error(transparent)]
    Rejected(#[from] Rejected),
    /// The caller of the request could not be [identified](crate::identify::Identify): the status is the one of the error.
    #[error(transparent)]
    Unidentified(#[from] Unidentified),
    /// The [digest](crate::digest::Digest) of the request has failed, mostly because the path is malformed: 400, or 500 where Kubernetes has it so.
    #[error(transparent)]
    Undigested(#[from] DigestError),
}

/// Makes the responses to requests that do not get to the service.
#[derive(Clone)]
pub(crate) enum Refusals {
    /// The layer makes the response.
    Own(RejectionForm),
    /// A closure of the layer's user makes the response.
    Custom(Arc<Respond>),
}

pub(crate) type Respond = dyn Fn(&Refusal, &Parts) -> Response<Bytes> + Send + Sync;

// === impl Refusal ===

impl Refusal {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Rejected(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Unidentified(error) => error.status,
            Self::Undigested(DigestError::Escape { .. } | DigestError::Path { .. }) => StatusCode::BAD_REQUEST,
            Self::Undigested(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// When the client should try again, if it was [rejected](Self::Rejected): the value of `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Rejected(rejected) => Some(rejected.retry_after),
            _ => None,
        }
    }

    /// The response that the layer sends by default to a request with these headers.
    pub fn response(&self, form: RejectionForm, request: &HeaderMap) -> Response<Bytes> {
        match self {
            Self::Rejected(rejected) => rejected.response(form, request),
            _ => response::failed(self.status(), &self.to_string(), request),
        }
    }
}

// === impl Refusals ===

impl Refusals {
    /// The response to a request that does not get to the service. If it was rejected, the rejection is among the extensions,
    /// so that a layer further out can tell the response from one of the service.
    #[cold]
    pub(crate) fn respond<B>(&self, refusal: impl Into<Refusal>, request: &Parts) -> Box<Response<FlowBody<B>>> {
        let refusal = refusal.into();
        let response = match self {
            Self::Custom(respond) if !is_grpc(&request.headers) => respond(&refusal, request),
            Self::Custom(_) => refusal.response(RejectionForm::default(), &request.headers),
            Self::Own(form) => refusal.response(*form, &request.headers),
        };
        let mut response = response.map(FlowBody::own);
        if let Refusal::Rejected(rejected) = refusal {
            response.extensions_mut().insert(rejected);
        }
        Box::new(response)
    }
}

impl fmt::Debug for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(form) => form.fmt(f),
            Self::Custom(_) => f.write_str("Custom"),
        }
    }
}
