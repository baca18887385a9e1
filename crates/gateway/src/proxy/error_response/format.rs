//! `ErrorFormat`: the body of an error response in the form that clients of a service expect.

use evenkeel_api::Preset;
use http::StatusCode;
use http::header::HeaderValue;
use serde_json::json;

use super::llm_api::LlmApi;
use super::template::Template;
use crate::config::{ResponseFormat, ResponsesConfig};

/// The facts for the body of an error response.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ErrorFacts<'a> {
    pub(crate) status: StatusCode,
    /// One plain sentence.
    pub(crate) message: &'a str,
    /// Why a request is rejected that may be sent again.
    pub(crate) reason: Option<&'static str>,
    /// The priority level that has rejected it.
    pub(crate) level: Option<&'a str>,
    pub(crate) retry_after_seconds: Option<u64>,
}

/// The form of bodies of error responses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    Status,
    Problem,
    OpenAi,
    Anthropic,
    /// Errors as the API of each request has them.
    Llm,
    Template(Box<Template>),
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

// === impl ErrorFormat ===

impl ErrorFormat {
    /// Errors name the setting below `responses`, and what is wrong with it.
    pub(crate) fn new(config: &ResponsesConfig, preset: Preset) -> Result<Self, (String, String)> {
        let format = config.format(preset);
        let template = match (&config.template, format) {
            (Some(template), ResponseFormat::Template) => template,
            (None, ResponseFormat::Template) => {
                return Err((
                    "template".to_owned(),
                    "is missing; the format `template` needs contentType and body".to_owned(),
                ));
            }
            (Some(_), _) => {
                return Err(("template".to_owned(), "is not used; set `format: template`, or remove it".to_owned()));
            }
            (None, ResponseFormat::Status) => return Ok(Self::Status),
            (None, ResponseFormat::OpenAi) => return Ok(Self::OpenAi),
            (None, ResponseFormat::Anthropic) => return Ok(Self::Anthropic),
            (None, ResponseFormat::Llm) => return Ok(Self::Llm),
            (None, ResponseFormat::Problem) => return Ok(Self::Problem),
        };
        let made = Template::new(template).map_err(|(setting, why)| (format!("template.{setting}"), why))?;
        Ok(Self::Template(Box::new(made)))
    }

    /// The type and the text of the body, for a request of this API if it is one of language models.
    pub(super) fn body(&self, facts: &ErrorFacts<'_>, api: LlmApi) -> (HeaderValue, String) {
        match self {
            Self::Status => (JSON, status_object(facts)),
            Self::Problem => (HeaderValue::from_static("application/problem+json"), problem(facts)),
            Self::OpenAi => (JSON, open_ai(facts)),
            Self::Anthropic => (JSON, anthropic(facts)),
            Self::Llm => (JSON, api.error(facts)),
            Self::Template(template) => (template.content_type(), template.body(facts)),
        }
    }
}

// === impl ErrorFacts ===

impl ErrorFacts<'_> {
    /// The phrase of the status.
    pub(super) fn title(&self) -> &'static str {
        self.status.canonical_reason().unwrap_or("Error")
    }
}

/// A `Status` of Kubernetes.
fn status_object(facts: &ErrorFacts<'_>) -> String {
    let details = facts.reason.zip(facts.retry_after_seconds).map_or_else(String::new, |(reason, seconds)| {
        format!(r#""details":{{"causes":[{{"reason":"{reason}"}}],"retryAfterSeconds":{seconds}}},"#)
    });
    format!(
        r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":{},"reason":"{}",{details}"code":{}}}"#,
        serde_json::Value::from(facts.message),
        kubernetes_reason(facts.status),
        facts.status.as_u16(),
    )
}

/// Problem details (RFC 9457). Where the status says all, the type is `about:blank` (4.2.1).
fn problem(facts: &ErrorFacts<'_>) -> String {
    use std::fmt::Write;
    let mut text = format!(
        r#"{{"type":"about:blank","title":"{}","status":{},"detail":{}"#,
        facts.title(),
        facts.status.as_u16(),
        serde_json::Value::from(facts.message),
    );
    // Writing to a string does not fail.
    if let Some(reason) = facts.reason {
        let _ = write!(text, r#","reason":"{reason}""#);
    }
    if let Some(level) = facts.level {
        let _ = write!(text, r#","level":{}"#, serde_json::Value::from(level));
    }
    if let Some(seconds) = facts.retry_after_seconds {
        let _ = write!(text, r#","retryAfterSeconds":{seconds}"#);
    }
    text.push('}');
    text
}

/// An error as the API of `OpenAI` sends it.
pub(super) fn open_ai(facts: &ErrorFacts<'_>) -> String {
    let (kind, code) = match facts.status {
        StatusCode::TOO_MANY_REQUESTS => ("requests", Some("rate_limit_exceeded")),
        StatusCode::UNAUTHORIZED => ("invalid_request_error", Some("invalid_api_key")),
        status if status.is_server_error() => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    json!({"error": {"message": facts.message, "type": kind, "param": null, "code": code}}).to_string()
}

/// An error as the API of Anthropic sends it.
pub(super) fn anthropic(facts: &ErrorFacts<'_>) -> String {
    let kind = match facts.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        status if status.is_server_error() => "api_error",
        _ => "invalid_request_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": facts.message}}).to_string()
}

/// The reason, as Kubernetes words it where it has a word for it.
fn kubernetes_reason(status: StatusCode) -> &'static str {
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
    use serde_json::Value;

    use super::*;

    fn body(format: &ErrorFormat, status: u16) -> Value {
        let facts = ErrorFacts {
            status: StatusCode::from_u16(status).unwrap(),
            message: "what \"happened\"",
            reason: (status == 429).then_some("queue-full"),
            level: (status == 429).then_some("free"),
            retry_after_seconds: (status == 429).then_some(4),
        };
        serde_json::from_str(&format.body(&facts, LlmApi::OpenAi).1).unwrap()
    }

    #[test]
    fn clients_of_each_kind_find_what_they_look_for() {
        assert_eq!(
            body(&ErrorFormat::Problem, 429),
            json!({"type": "about:blank", "title": "Too Many Requests", "status": 429, "detail": "what \"happened\"",
                   "reason": "queue-full", "level": "free", "retryAfterSeconds": 4})
        );
        assert_eq!(
            body(&ErrorFormat::Problem, 502),
            json!({"type": "about:blank", "title": "Bad Gateway", "status": 502, "detail": "what \"happened\""})
        );
        for (status, kind, code) in [
            (401, "invalid_request_error", json!("invalid_api_key")),
            (403, "invalid_request_error", Value::Null),
            (429, "requests", json!("rate_limit_exceeded")),
            (503, "server_error", Value::Null),
        ] {
            let error = json!({"message": "what \"happened\"", "type": kind, "param": null, "code": code});
            assert_eq!(body(&ErrorFormat::OpenAi, status), json!({"error": error}));
        }
        for (status, kind) in [
            (400, "invalid_request_error"),
            (401, "authentication_error"),
            (403, "permission_error"),
            (413, "request_too_large"),
            (429, "rate_limit_error"),
            (502, "api_error"),
            (503, "overloaded_error"),
            (504, "timeout_error"),
        ] {
            let error = json!({"type": kind, "message": "what \"happened\""});
            assert_eq!(body(&ErrorFormat::Anthropic, status), json!({"type": "error", "error": error}));
        }
        let status = body(&ErrorFormat::Status, 429);
        assert_eq!(
            (&status["kind"], &status["reason"], &status["code"]),
            (&json!("Status"), &json!("TooManyRequests"), &json!(429))
        );
    }
}
