//! The responses to requests that do not get to the service.

use std::time::Duration;

use bytes::Bytes;
use evenkeel_api::meta::{Status, StatusCause, StatusDetails};
use evenkeel_api::{GROUP, Kind, Preset};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, Response, StatusCode};

use crate::control::rejected::Rejected;
use crate::control::uid_headers::UidHeaders;
use crate::layer::grpc::{self, is_grpc};

/// The form of the response to a rejected request. gRPC calls always get a gRPC response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum RejectionForm {
    /// A `Status` object of Kubernetes, in JSON, which names the reason.
    #[default]
    Status,
    /// The line of text that a kube-apiserver sends, byte for byte (HF-12).
    PlainText,
}

/// The reason for an error response, before it is written in a form that the client understands.
struct Problem<'a> {
    status: StatusCode,
    message: &'a str,
    details: Option<StatusDetails>,
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
/// The priority level that has rejected a request.
const LEVEL: HeaderName = HeaderName::from_static("x-evenkeel-level");
/// The reason for the rejection.
const REASON: HeaderName = HeaderName::from_static("x-evenkeel-reason");
/// How long the request would have waited, in seconds.
const EXPECTED_WAIT: HeaderName = HeaderName::from_static("x-evenkeel-expected-wait");
/// How long a request has waited, in seconds.
const WAITED: HeaderName = HeaderName::from_static("x-evenkeel-waited");
/// The place that a request had among those that waited.
const QUEUE_POSITION: HeaderName = HeaderName::from_static("x-evenkeel-queue-position");
const PLAIN_TEXT: &str = "Too many requests, please try again later.\n";

/// The response to a request that fails before it is classified: it cannot be understood (DG-16), or its caller could not be
/// identified.
pub(crate) fn failed(status: StatusCode, message: &str, request: &HeaderMap) -> Response<Bytes> {
    Problem { status, message, details: None }.response(request)
}

/// Sets the headers that tell the client how long its request has waited, and at which place.
pub(crate) fn set_wait(headers: &mut HeaderMap, position: u32, waited: Duration) {
    if let Ok(waited) = HeaderValue::try_from(format!("{:.3}", waited.as_secs_f64())) {
        headers.insert(WAITED, waited);
    }
    headers.insert(QUEUE_POSITION, position.into());
}

fn with_text(status: StatusCode, kind: HeaderValue, text: Bytes) -> Response<Bytes> {
    let mut response = Response::new(text);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

// === impl Rejected ===

impl Rejected {
    /// The response of the layer, for services that call [`FlowControl::admit`](crate::FlowControl::admit)
    /// themselves: a `429` with `Retry-After` in this form, or one of gRPC if the request with these headers is.
    ///
    /// Unless the service is a Kubernetes API, the headers `X-Evenkeel-Level`, `X-Evenkeel-Reason` and
    /// `X-Evenkeel-Expected-Wait` (seconds, if it is known), and the `details` of a `Status`, say what has happened.
    ///
    /// ```
    /// use evenkeel::Rejected;
    /// use evenkeel::service::RejectionForm;
    ///
    /// fn respond(rejected: &Rejected, request: &http::HeaderMap) -> http::Response<bytes::Bytes> {
    ///     rejected.response(RejectionForm::Status, request)
    /// }
    /// ```
    pub fn response(&self, form: RejectionForm, request: &HeaderMap) -> Response<Bytes> {
        let (status, seconds) = (StatusCode::TOO_MANY_REQUESTS, self.retry_after.as_secs());
        let mut response = if form == RejectionForm::PlainText && !is_grpc(request) {
            let mut response = with_text(status, PLAIN, Bytes::from_static(PLAIN_TEXT.as_bytes()));
            response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
            response
        } else {
            Problem { status, message: &self.to_string(), details: Some(self.details()) }.response(request)
        };
        self.set_object_headers(response.headers_mut());
        response
    }

    /// Sets the headers of the layer's response, for a response in a form of your own (see
    /// [`FlowLayer::on_refusal`](crate::FlowLayer::on_refusal)): `Retry-After`, and those that say what has happened.
    pub fn set_headers(&self, headers: &mut HeaderMap) {
        headers.insert(RETRY_AFTER, self.retry_after.as_secs().into());
        self.set_object_headers(headers);
    }

    /// Sets `X-Evenkeel-Queue-Position`, the [place](Self::position) that the request would have had, if it is known.
    pub fn set_position(&self, headers: &mut HeaderMap) {
        if let Some(position) = self.position {
            headers.insert(QUEUE_POSITION, position.into());
        }
    }

    fn set_object_headers(&self, headers: &mut HeaderMap) {
        if self.preset() == Preset::Kubernetes {
            return UidHeaders::new(self.flow_schema_uid(), self.priority_level_uid()).set(headers);
        }
        // Names that are no header values are not valid names of objects either.
        if let Ok(level) = HeaderValue::from_str(self.priority_level()) {
            headers.insert(LEVEL, level);
        }
        headers.insert(REASON, HeaderValue::from_static(self.reason.as_str()));
        if let Some(Ok(wait)) = self.expected_wait_seconds().map(HeaderValue::try_from) {
            headers.insert(EXPECTED_WAIT, wait);
        }
    }

    /// The `details` of a `Status`. In Kubernetes there is nothing but the time.
    fn details(&self) -> StatusDetails {
        let retry_after_seconds = Some(self.retry_after.as_secs());
        if self.preset() == Preset::Kubernetes {
            return StatusDetails { retry_after_seconds, ..StatusDetails::default() };
        }
        let message = match self.expected_wait_seconds() {
            Some(seconds) => format!("expected wait: {seconds} s"),
            None => "expected wait: unknown".to_owned(),
        };
        let cause = StatusCause { reason: self.reason.as_str(), message, field: String::new() };
        StatusDetails {
            name: self.priority_level().to_owned(),
            group: GROUP.into(),
            kind: Kind::PriorityLevelConfiguration.resource().into(),
            causes: vec![cause],
            retry_after_seconds,
            ..StatusDetails::default()
        }
    }

    /// How long the request would have waited, in seconds with three decimals.
    fn expected_wait_seconds(&self) -> Option<String> {
        self.expected_wait.map(|wait| format!("{:.3}", wait.as_secs_f64()))
    }
}

// === impl Problem ===

impl Problem<'_> {
    fn response(&self, request: &HeaderMap) -> Response<Bytes> {
        if is_grpc(request) {
            return self.grpc();
        }
        let mut response = with_text(self.status, JSON, self.status_object().into());
        if let Some(seconds) = self.retry_after() {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }

    fn retry_after(&self) -> Option<u64> {
        self.details.as_ref()?.retry_after_seconds
    }

    /// A Kubernetes `Status` (API-98).
    fn status_object(&self) -> String {
        let status = Status {
            message: Some(self.message),
            reason: reason(self.status),
            details: self.details.as_ref(),
            code: Some(self.status.as_u16()),
            ..Status::default()
        };
        // A status has no value that JSON cannot say.
        serde_json::to_string(&status).unwrap_or_default()
    }

    fn grpc(&self) -> Response<Bytes> {
        let mut response = grpc::error_response(self.status, self.message);
        if let Some(seconds) = self.retry_after() {
            response.headers_mut().insert(grpc::RETRY_PUSHBACK, seconds.saturating_mul(1000).into());
        }
        response
    }
}

/// The reason that Kubernetes gives with a status.
fn reason(status: StatusCode) -> Option<&'static str> {
    Some(match status {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::FORBIDDEN => "Forbidden",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::INTERNAL_SERVER_ERROR => "InternalError",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        _ => return None,
    })
}
