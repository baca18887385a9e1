//! `Admitted` as an extractor of axum.

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::request::Parts;

use crate::layer::admitted::Admitted;

/// A handler of axum asks for [`Admitted`], and there is none: the layer is missing, is around other routes, or does not
/// [insert](crate::FlowLayer::insert_admitted) it. The response is a 500.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request has no `Admitted`: put the route into a flow layer with `insert_admitted()`")]
#[non_exhaustive]
pub struct NotAdmitted;

// === impl Admitted ===

/// With the feature `axum`, handlers take [`Admitted`] as an argument.
impl<S: Send + Sync, X: Clone + Send + Sync + 'static> FromRequestParts<S> for Admitted<X> {
    type Rejection = NotAdmitted;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, NotAdmitted> {
        parts.extensions.get::<Self>().cloned().ok_or(NotAdmitted)
    }
}

// === impl NotAdmitted ===

impl IntoResponse for NotAdmitted {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.to_string()).into_response()
    }
}
