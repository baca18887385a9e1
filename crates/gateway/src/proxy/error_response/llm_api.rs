//! `LlmApi`: which API of language models a request is for, and the form of errors in that API (LM-6).

use std::time::Duration;

use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Uri};
use serde_json::json;

use super::Failure;
use super::format::{ErrorFacts, anthropic, open_ai};

/// The API that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LlmApi {
    /// `OpenAI`'s API, and all requests that are for none of the others.
    #[default]
    OpenAi,
    Anthropic,
    Ollama,
}

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The longest wait that SDKs accept: told to wait for longer, they come back after a second or two.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Clients are told to come back up to this part earlier than that, so that those rejected together do not come back together.
const SPREAD: f64 = 0.25;

// === impl LlmApi ===

impl LlmApi {
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path();
        if headers.contains_key("anthropic-version") || path.ends_with("/v1/messages") {
            Self::Anthropic
        } else if path.contains("/api/") && !path.contains("/v1/") {
            // Many services have the API of OpenAI below `/api/v1`.
            Self::Ollama
        } else {
            Self::OpenAi
        }
    }

    /// The name of OpenTelemetry's conventions for whoever made the API: who serves it is not known. They have none for Ollama, and leave such names to
    /// those who need them.
    pub(crate) const fn provider(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Ollama => "ollama",
        }
    }

    /// The body of an error response.
    pub(super) fn error(self, facts: &ErrorFacts<'_>) -> String {
        match self {
            Self::OpenAi => open_ai(facts),
            Self::Anthropic => anthropic(facts),
            Self::Ollama => json!({"error": facts.message}).to_string(),
        }
    }

    /// The last event of a stream whose request is told to end, as streams of this API have it.
    pub(crate) fn revoked_event(self) -> String {
        let failure = Failure::Revoked;
        let refusal = failure.refusal();
        let message = failure.to_string();
        let facts = ErrorFacts {
            status: failure.status(),
            message: &message,
            reason: refusal.map(|refusal| refusal.reason),
            level: None,
            retry_after_seconds: refusal.map(|refusal| refusal.retry_after_seconds),
        };
        let error = self.error(&facts);
        match self {
            Self::OpenAi => format!("data: {error}\n\n"),
            Self::Anthropic => format!("event: error\ndata: {error}\n\n"),
            Self::Ollama => format!("{error}\n"),
        }
    }
}

/// Tells a client of an SDK when to come back: after `retry_after`, which is spread already, and at most after the time that SDKs wait. Where all
/// would be told that time, `random`, from 0 to 1, spreads them. A client does not come back by itself if its request is expected to wait for
/// longer than that.
pub(super) fn set_retry_headers(
    headers: &mut HeaderMap,
    retry_after: Duration,
    expected_wait: Option<Duration>,
    random: f64,
) {
    if expected_wait.is_some_and(|wait| wait > RETRY_MAX) {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    let latest = RETRY_MAX.mul_f64(1.0 - SPREAD * random.clamp(0.0, 1.0));
    let wait = retry_after.clamp(Duration::from_millis(100), RETRY_MAX).min(latest);
    let milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    headers.insert(RETRY_AFTER_MS, milliseconds.into());
    headers.insert(RETRY_AFTER, milliseconds.div_ceil(1000).into());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(path: &str, header: Option<&'static str>) -> LlmApi {
        let headers = header.map(|name| (HeaderName::from_static(name), HeaderValue::from_static("x")));
        LlmApi::of(&path.parse().unwrap(), &headers.into_iter().collect())
    }

    #[test]
    fn path_and_headers_tell_apis_apart() {
        assert_eq!(api("/v1/chat/completions", None), LlmApi::OpenAi);
        assert_eq!(api("/v1/messages?beta=true", None), LlmApi::Anthropic);
        assert_eq!(api("/v1/models", Some("anthropic-version")), LlmApi::Anthropic);
        assert_eq!(api("/api/chat", None), LlmApi::Ollama);
        assert_eq!(api("/team/api/generate", None), LlmApi::Ollama);
        assert_eq!(api("/api/v1/chat/completions", None), LlmApi::OpenAi);
        assert_eq!(api("/", None), LlmApi::OpenAi);
    }

    #[test]
    fn clients_are_told_a_time_that_sdks_obey() {
        for (retry_ms, expected_wait, random, milliseconds, seconds, should_retry) in [
            (2000, Some(3), 0.0, "2000", "2", None),
            (2000, Some(3), 1.0, "2000", "2", None),
            (0, Some(0), 0.0, "100", "1", None),
            (59_000, Some(45), 0.0, "59000", "59", None),
            // They may all be told the longest time.
            (59_000, Some(60), 1.0, "45000", "45", None),
            (61_000, Some(61), 0.5, "52500", "53", Some("false")),
            // The spread of the suggestion is no reason to give up.
            (75_000, Some(58), 0.0, "60000", "60", None),
            (90_000, None, 0.0, "60000", "60", None),
        ] {
            let mut headers = HeaderMap::new();
            let expected_wait = expected_wait.map(Duration::from_secs);
            set_retry_headers(&mut headers, Duration::from_millis(retry_ms), expected_wait, random);
            assert_eq!(headers[RETRY_AFTER_MS], milliseconds, "{retry_ms}");
            assert_eq!(headers[RETRY_AFTER], seconds, "{retry_ms}");
            let told = headers.get(SHOULD_RETRY).map(HeaderValue::as_bytes);
            assert_eq!(told, should_retry.map(str::as_bytes), "{retry_ms}");
        }
    }

    #[test]
    fn ollama_says_it_in_one_text() {
        let facts = ErrorFacts {
            status: http::StatusCode::TOO_MANY_REQUESTS,
            message: "too many",
            reason: None,
            level: None,
            retry_after_seconds: None,
        };
        assert_eq!(LlmApi::Ollama.error(&facts), r#"{"error":"too many"}"#);
    }
}
