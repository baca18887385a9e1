//! The gateway's own error responses: which step failed, in the form that the client understands.
//!
//! They contain no addresses and no other internals; those are in the log.

use evenkeel::grpc::{self, RETRY_PUSHBACK};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Response, StatusCode};

use crate::observe::metrics::UpstreamFailure;
use crate::proxy::response_body::ResponseBody;

pub(crate) use evenkeel::grpc::is_grpc;

/// Why there is no response of an upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the upstream's name cannot be resolved")]
    Resolve,
    #[error("connecting to the upstream failed")]
    Connect,
    #[error("connecting to the upstream timed out")]
    ConnectTimeout,
    #[error("the upstream closed the connection before it responded")]
    Closed,
    #[error("the upstream does not support HTTP/2, which gRPC needs")]
    NotHttp2,
    #[error("the upstream sent a malformed response")]
    MalformedResponse,
    #[error("the upstream did not respond in time")]
    ResponseTimeout,
    #[error("the upstream does not respond")]
    Silent,
    #[error("the request took too long")]
    TotalTimeout,
    #[error("the head of the request did not arrive in time")]
    HeadTimeout,
    #[error("the body of the request stalled")]
    BodyStalled,
    #[error("the body of the request arrives too slowly")]
    BodyTooSlow,
    #[error("too many slow requests at the same time; try again")]
    NoBuffer,
    #[error("the client has too many connections")]
    TooManyConnections,
    #[error("the client has too many requests at the same time")]
    TooManyStreams,
    #[error("the body of the request is too large")]
    BodyTooLarge,
    #[error("malformed request body")]
    MalformedBody,
    #[error("the request has no host, an invalid one, or two that differ")]
    HostConflict,
    #[error("invalid request target")]
    Target,
    #[error("the request has too many headers")]
    TooManyFields,
    #[error("CONNECT is not allowed: this gateway is not a forward proxy")]
    Connection,
    #[error("unsupported protocol: over HTTP/2 only websocket is supported")]
    UnknownProtocol,
    #[error("the upstream did not accept the WebSocket")]
    NotUpgraded,
    #[error("the client disconnected")]
    ClientGone,
}

/// Why the gateway itself rejects a request that may be sent again, as the header, the body and the access log say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: &'static str,
    pub(crate) retry_after_seconds: u64,
}

/// Why a request is rejected, as the flow control says it too.
const REASON: HeaderName = HeaderName::from_static("x-evenkeel-reason");

/// The form of a response that a client understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A `Status` object.
    Status,
    /// A status of gRPC.
    Grpc,
}

// === impl Failure ===

impl Failure {
    /// What metrics call it, if it is the upstream's.
    pub(crate) fn of_upstream(self) -> Option<UpstreamFailure> {
        Some(match self {
            Self::Resolve => UpstreamFailure::Resolve,
            Self::Connect => UpstreamFailure::Connect,
            Self::ConnectTimeout | Self::ResponseTimeout | Self::Silent => UpstreamFailure::TimeOut,
            Self::Closed => UpstreamFailure::Cut,
            Self::NotHttp2 | Self::MalformedResponse => UpstreamFailure::Malformed,
            _ => return None,
        })
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Resolve
            | Self::Connect
            | Self::Closed
            | Self::NotHttp2
            | Self::MalformedResponse
            | Self::NotUpgraded => StatusCode::BAD_GATEWAY,
            Self::NoBuffer => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectTimeout | Self::ResponseTimeout | Self::Silent | Self::TotalTimeout => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::HeadTimeout | Self::BodyStalled | Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyConnections | Self::TooManyStreams => StatusCode::TOO_MANY_REQUESTS,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MalformedBody | Self::HostConflict | Self::Target | Self::ClientGone => StatusCode::BAD_REQUEST,
            Self::TooManyFields => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Self::Connection => StatusCode::METHOD_NOT_ALLOWED,
            Self::UnknownProtocol => StatusCode::NOT_IMPLEMENTED,
        }
    }

    /// Why the request is rejected and when to try again, if another try may succeed.
    pub(crate) fn refusal(self) -> Option<Refusal> {
        let reason = match self {
            Self::NoBuffer => "no-buffer",
            Self::TooManyConnections => "too-many-connections",
            Self::TooManyStreams => "too-many-streams",
            _ => return None,
        };
        // These requests end quickly.
        Some(Refusal { reason, retry_after_seconds: 1 })
    }

    /// The response to a request with these headers.
    pub(crate) fn response(self, request: &HeaderMap) -> Response<ResponseBody> {
        self.response_in(Form::of(request))
    }

    /// The response in this form.
    pub(crate) fn response_in(self, form: Form) -> Response<ResponseBody> {
        let refusal = self.refusal();
        let mut response = response_with(self.status(), &self.to_string(), refusal, form);
        if let Some(Refusal { reason, retry_after_seconds }) = refusal {
            let headers = response.headers_mut();
            match form {
                Form::Status => headers.insert(RETRY_AFTER, retry_after_seconds.into()),
                Form::Grpc => headers.insert(RETRY_PUSHBACK, (retry_after_seconds * 1000).into()),
            };
            headers.insert(REASON, HeaderValue::from_static(reason));
        }
        response
    }
}

// === impl Form ===

impl Form {
    /// For a request with these headers.
    pub(crate) fn of(request: &HeaderMap) -> Self {
        if is_grpc(request) { Self::Grpc } else { Self::Status }
    }
}

/// A response with this status and message.
pub(crate) fn error_response(status: StatusCode, message: &str, form: Form) -> Response<ResponseBody> {
    response_with(status, message, None, form)
}

fn response_with(status: StatusCode, message: &str, refusal: Option<Refusal>, form: Form) -> Response<ResponseBody> {
    if form == Form::Grpc {
        return grpc::error_response(status, message).map(|_| ResponseBody::default());
    }
    let details = refusal.map_or_else(String::new, |Refusal { reason, retry_after_seconds: seconds }| {
        format!(r#""details":{{"causes":[{{"reason":"{reason}"}}],"retryAfterSeconds":{seconds}}},"#)
    });
    let text = format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":{},"reason":"{}",{details}"code":{}}}"#,
        serde_json::Value::from(message),
        reason(status),
        status.as_u16(),
    );
    let mut response = Response::new(ResponseBody::own(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The reason, as Kubernetes words it where it has a word for it.
fn reason(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "BadRequest",
        StatusCode::METHOD_NOT_ALLOWED => "MethodNotAllowed",
        StatusCode::NOT_IMPLEMENTED => "NotImplemented",
        StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
        StatusCode::SERVICE_UNAVAILABLE => "ServiceUnavailable",
        StatusCode::BAD_GATEWAY => "BadGateway",
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => "Timeout",
        StatusCode::UNAUTHORIZED => "Unauthorized",
        StatusCode::TOO_MANY_REQUESTS => "TooManyRequests",
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "RequestHeaderFieldsTooLarge",
        StatusCode::HTTP_VERSION_NOT_SUPPORTED => "HTTPVersionNotSupported",
        _ => "InternalError",
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::{Value, json};

    use super::*;

    async fn body_of(response: Response<ResponseBody>) -> Value {
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
    }

    #[tokio::test]
    async fn a_refusal_says_the_same_in_headers_and_body() {
        for failure in [Failure::NoBuffer, Failure::TooManyConnections, Failure::TooManyStreams] {
            let Refusal { reason, retry_after_seconds } = failure.refusal().unwrap();
            let response = failure.response_in(Form::Status);
            assert_eq!(response.headers()[REASON], reason);
            assert_eq!(response.headers()[RETRY_AFTER], retry_after_seconds.to_string());
            let body: Value = body_of(response).await;
            let details = json!({"causes": [{"reason": reason}], "retryAfterSeconds": retry_after_seconds});
            assert_eq!((&body["details"], &body["message"]), (&details, &failure.to_string().into()));
            let call = failure.response_in(Form::Grpc);
            assert_eq!(call.headers()[REASON], reason);
            assert_eq!(call.headers()[RETRY_PUSHBACK], (retry_after_seconds * 1000).to_string());
            assert!(!call.headers().contains_key(RETRY_AFTER));
        }
    }

    #[tokio::test]
    async fn what_cannot_be_tried_again_says_no_time() {
        let response = Failure::BodyTooLarge.response_in(Form::Status);
        assert!(!response.headers().contains_key(RETRY_AFTER) && !response.headers().contains_key(REASON));
        let body: Value = body_of(response).await;
        assert_eq!(body.get("details"), None);
    }
}
