//! The gateway's own error responses: which step failed, in the form that the client understands.
//!
//! Error responses contain no addresses and no other internals; those are in the log.

mod format;
mod llm_api;
mod origins;
mod template;

use std::time::Duration;

use bytes::Bytes;
use evenkeel::grpc::{self, RETRY_PUSHBACK};
use evenkeel::service::Refusal as FlowRefusal;
use evenkeel::service::RejectionForm;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderMap, Response, StatusCode, Uri};

use self::llm_api::set_retry_headers;
use crate::config::Config;
use crate::observe::metrics::UpstreamFailure;
use crate::proxy::response_body::ResponseBody;

pub(crate) use evenkeel::grpc::is_grpc;
pub(crate) use format::{ErrorFacts, ErrorFormat};
pub(crate) use llm_api::LlmApi;
pub(crate) use origins::{AllowedOrigins, is_preflight};

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
    #[error("no service has the host of the request")]
    UnknownHost,
    #[error("no service has the path of the request")]
    UnknownPath,
    #[error("the service replaces the beginning of its paths, and this one is not in its normal form")]
    PathSpelling,
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
    #[error("{REVOKED_MESSAGE}")]
    Revoked,
}

/// Why the gateway itself rejects a request that may be sent again, as the header, the body and the access log say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: &'static str,
    pub(crate) retry_after_seconds: u64,
}

/// When to try again if the upstream could not be reached, and if it was too slow.
const RECONNECT_SECONDS: u64 = 1;
const RECOVERY_SECONDS: u64 = 5;

/// Why a request ended before its service was done with it, as headers, bodies and the access log say it.
pub(crate) const REVOKED: &str = "revoked";

/// Why a request is rejected, as the flow control says it too.
const REASON: HeaderName = HeaderName::from_static("x-evenkeel-reason");

/// The message for the client of a request that was told to end because its level is revocable (LM-7).
const REVOKED_MESSAGE: &str = "the request was ended because others need its seats; try again";

/// How the gateway's own error responses are made, under the settings of one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ErrorResponses {
    format: ErrorFormat,
    origins: AllowedOrigins,
    tells_rates: bool,
}

/// The form of a response that a client understands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// A body as the settings say it, which a web page of this origin may read, and clients of this API if that counts.
    Body { origin: Option<HeaderValue>, api: LlmApi },
    /// A status of gRPC.
    Grpc,
}

// === impl Failure ===

impl Failure {
    /// The kind of the failure in metrics, if it is the upstream's.
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
            Self::NoBuffer | Self::Revoked => StatusCode::SERVICE_UNAVAILABLE,
            Self::ConnectTimeout | Self::ResponseTimeout | Self::Silent | Self::TotalTimeout => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::HeadTimeout | Self::BodyStalled | Self::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooManyConnections | Self::TooManyStreams => StatusCode::TOO_MANY_REQUESTS,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::MalformedBody | Self::HostConflict | Self::Target | Self::PathSpelling | Self::ClientGone => {
                StatusCode::BAD_REQUEST
            }
            Self::UnknownHost => StatusCode::MISDIRECTED_REQUEST,
            Self::UnknownPath => StatusCode::NOT_FOUND,
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
            Self::Revoked => REVOKED,
            _ => return None,
        };
        // These requests end quickly.
        Some(Refusal { reason, retry_after_seconds: 1 })
    }

    /// After how many seconds another try may succeed, as far as that can be said: an upstream that cannot be reached is given
    /// time to start again, and one that is too slow to recover. A request that fails for another reason would fail again.
    fn retry_after_seconds(self) -> Option<u64> {
        match self {
            Self::Resolve | Self::Connect | Self::ConnectTimeout | Self::Closed | Self::Silent => {
                Some(RECONNECT_SECONDS)
            }
            Self::ResponseTimeout | Self::TotalTimeout => Some(RECOVERY_SECONDS),
            _ => self.refusal().map(|refusal| refusal.retry_after_seconds),
        }
    }

    /// The response to a request with this head.
    pub(crate) fn response(self, uri: &Uri, headers: &HeaderMap, errors: &ErrorResponses) -> Response<ResponseBody> {
        self.response_in(errors.form(uri, headers), errors)
    }

    /// The response in this form.
    pub(crate) fn response_in(self, form: Form, errors: &ErrorResponses) -> Response<ResponseBody> {
        let refusal = self.refusal();
        let is_grpc = form == Form::Grpc;
        let mut response = errors.response_with(self.status(), &self.to_string(), refusal, form);
        let headers = response.headers_mut();
        if let Some(seconds) = self.retry_after_seconds().filter(|_| !is_grpc) {
            headers.entry(RETRY_AFTER).or_insert_with(|| seconds.into());
        }
        if let Some(Refusal { reason, retry_after_seconds }) = refusal {
            if is_grpc {
                headers.insert(RETRY_PUSHBACK, (retry_after_seconds * 1000).into());
            }
            headers.insert(REASON, HeaderValue::from_static(reason));
        }
        response
    }
}

// === impl ErrorResponses ===

impl ErrorResponses {
    /// Makes responses as the settings say, which have been checked.
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            format: ErrorFormat::new(&config.responses, config.preset).unwrap_or(ErrorFormat::Problem),
            origins: AllowedOrigins::new(&config.cors.origins).unwrap_or_default(),
            tells_rates: config.responses.rate_limit_fields,
        }
    }

    /// The form for a request with this head.
    pub(crate) fn form(&self, uri: &Uri, headers: &HeaderMap) -> Form {
        if is_grpc(headers) { Form::Grpc } else { self.body_form(uri, headers) }
    }

    /// The form for a request with this head that is not a call of gRPC.
    #[inline]
    pub(crate) fn body_form(&self, uri: &Uri, headers: &HeaderMap) -> Form {
        Form::Body { origin: self.origins.of(headers), api: self.api(uri, headers) }
    }

    /// The API of a request, if error responses depend on that.
    #[inline]
    fn api(&self, uri: &Uri, headers: &HeaderMap) -> LlmApi {
        if self.format == ErrorFormat::Llm { LlmApi::of(uri, headers) } else { LlmApi::default() }
    }

    /// The API whose streams have errors in the form of the settings, for a request with this head; none if that form is for whole bodies.
    pub(crate) fn stream_api(&self, uri: &Uri, headers: &HeaderMap) -> Option<LlmApi> {
        match self.format {
            ErrorFormat::Llm => Some(LlmApi::of(uri, headers)),
            ErrorFormat::OpenAi => Some(LlmApi::OpenAi),
            ErrorFormat::Anthropic => Some(LlmApi::Anthropic),
            _ => None,
        }
    }

    /// A response with this status and message to bytes that are not known to be a request.
    pub(crate) fn response(&self, status: StatusCode, message: &str) -> Response<ResponseBody> {
        self.response_with(status, message, None, Form::UNKNOWN)
    }

    fn response_with(
        &self,
        status: StatusCode,
        message: &str,
        refusal: Option<Refusal>,
        form: Form,
    ) -> Response<ResponseBody> {
        let Form::Body { origin, api } = form else {
            return grpc::error_response(status, message).map(|_| ResponseBody::default());
        };
        let facts = ErrorFacts {
            status,
            message,
            reason: refusal.map(|refusal| refusal.reason),
            level: None,
            retry_after_seconds: refusal.map(|refusal| refusal.retry_after_seconds),
        };
        let mut response = self.with_body(&facts, origin, api);
        if self.format == ErrorFormat::Llm
            && let Some(refusal) = refusal
        {
            // Such requests end quickly, and nothing else spreads those that come back.
            let retry_after = Duration::from_secs(refusal.retry_after_seconds).mul_f64(1.0 + 0.5 * fastrand::f64());
            set_retry_headers(response.headers_mut(), retry_after, None, 0.0);
        }
        response.map(ResponseBody::own)
    }

    fn with_body(&self, facts: &ErrorFacts<'_>, origin: Option<HeaderValue>, api: LlmApi) -> Response<Bytes> {
        let (content_type, text) = self.format.body(facts, api);
        let mut response = Response::new(text.into());
        *response.status_mut() = facts.status;
        response.headers_mut().insert(CONTENT_TYPE, content_type);
        self.origins.apply(origin, response.headers_mut());
        response
    }

    /// Whether responses tell clients how much of their rates and seats is left.
    pub(crate) fn tells_rates(&self) -> bool {
        self.tells_rates
    }

    /// Whether responses tell clients how long their requests have waited, and where in the line.
    pub(crate) fn tells_waits(&self) -> bool {
        self.format == ErrorFormat::Llm
    }

    /// Whether the flow control's own responses have the form of the settings.
    pub(crate) fn is_of_flow_control(&self) -> bool {
        self.format == ErrorFormat::Status && self.origins == AllowedOrigins::None
    }

    /// The response to a request that the flow control does not let in.
    pub(crate) fn refuse(&self, refusal: &FlowRefusal, request: &Parts) -> Response<Bytes> {
        let Parts { uri, headers, .. } = request;
        let origin = self.origins.of(headers);
        if self.format == ErrorFormat::Status {
            let mut response = refusal.response(RejectionForm::Status, headers);
            self.origins.apply(origin, response.headers_mut());
            return response;
        }
        let rejected = match refusal {
            FlowRefusal::Rejected(rejected) => Some(rejected),
            _ => None,
        };
        let (status, text) = (refusal.status(), refusal.to_string());
        let facts = ErrorFacts {
            status,
            // The text of Kubernetes repeats the status, and does not say what to do.
            message: if status == StatusCode::UNAUTHORIZED { NO_CREDENTIAL } else { &text },
            reason: rejected.map(|rejected| rejected.reason.as_str()),
            level: rejected.map(evenkeel::Rejected::priority_level),
            retry_after_seconds: refusal.retry_after().map(|time| time.as_secs()),
        };
        let mut response = self.with_body(&facts, origin, self.api(uri, headers));
        if let Some(rejected) = rejected {
            rejected.set_headers(response.headers_mut());
            if self.format == ErrorFormat::Llm {
                rejected.set_position(response.headers_mut());
                let (retry_after, expected_wait) = (rejected.retry_after, rejected.expected_wait);
                set_retry_headers(response.headers_mut(), retry_after, expected_wait, fastrand::f64());
            }
        }
        response
    }
}

/// The message for a client that is not authenticated. It does not say which of its credentials is wrong.
const NO_CREDENTIAL: &str =
    "the request has no valid credential; send a key, a token or a certificate that this service accepts";

// === impl Form ===

impl Form {
    /// The form for bytes that are not known to be a request.
    pub(crate) const UNKNOWN: Self = Self::Body { origin: None, api: LlmApi::OpenAi };
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use serde_json::{Value, json};

    use super::*;

    fn errors(settings: &str) -> ErrorResponses {
        ErrorResponses::new(&Config::parse("x", settings).unwrap())
    }

    async fn body_of(response: Response<ResponseBody>) -> Value {
        serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
    }

    #[tokio::test]
    async fn a_refusal_says_the_same_in_headers_and_body() {
        for failure in [Failure::NoBuffer, Failure::TooManyConnections, Failure::TooManyStreams] {
            let Refusal { reason, retry_after_seconds } = failure.refusal().unwrap();
            let errors = errors("preset: kubernetes");
            let response = failure.response_in(Form::UNKNOWN, &errors);
            assert_eq!(response.headers()[REASON], reason);
            assert_eq!(response.headers()[RETRY_AFTER], retry_after_seconds.to_string());
            let body: Value = body_of(response).await;
            let details = json!({"causes": [{"reason": reason}], "retryAfterSeconds": retry_after_seconds});
            assert_eq!((&body["details"], &body["message"]), (&details, &failure.to_string().into()));
            let call = failure.response_in(Form::Grpc, &errors);
            assert_eq!(call.headers()[REASON], reason);
            assert_eq!(call.headers()[RETRY_PUSHBACK], (retry_after_seconds * 1000).to_string());
            assert!(!call.headers().contains_key(RETRY_AFTER));
        }
    }

    #[test]
    fn a_failure_of_the_upstream_says_when_to_try_again() {
        for (failure, status, seconds) in [
            (Failure::Connect, 502, Some("1")),
            (Failure::Closed, 502, Some("1")),
            (Failure::MalformedResponse, 502, None),
            (Failure::NoBuffer, 503, Some("1")),
            (Failure::ConnectTimeout, 504, Some("1")),
            (Failure::ResponseTimeout, 504, Some("5")),
            (Failure::TotalTimeout, 504, Some("5")),
        ] {
            for settings in ["{}", "responses: {format: status}", "responses: {format: openai}", "preset: llm"] {
                let response = failure.response_in(Form::UNKNOWN, &errors(settings));
                let told = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
                assert_eq!(response.status(), status);
                // Clients of language models are spread over some more time.
                let is_told =
                    if settings == "preset: llm" { told.is_some() == seconds.is_some() } else { told == seconds };
                assert!(is_told, "{failure:?} {settings} {told:?}");
            }
            assert!(!failure.response_in(Form::Grpc, &errors("{}")).headers().contains_key(RETRY_AFTER));
        }
    }

    #[tokio::test]
    async fn what_cannot_be_tried_again_says_no_time() {
        let response = Failure::BodyTooLarge.response_in(Form::UNKNOWN, &errors("{}"));
        assert!(!response.headers().contains_key(RETRY_AFTER) && !response.headers().contains_key(REASON));
        let body: Value = body_of(response).await;
        assert_eq!(
            body,
            json!({"type": "about:blank", "title": "Payload Too Large", "status": 413,
                                "detail": "the body of the request is too large"})
        );
    }
}
