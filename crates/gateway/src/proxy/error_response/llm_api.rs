//! `LlmApi`: which API of language models a request is for, and what its clients understand when there is no response (LM-6).

use std::time::Duration;

use http::header::{HeaderName, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, Uri};
use serde_json::json;

use super::format::{ErrorFacts, anthropic, open_ai};

/// The API that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LlmApi {
    /// And of everything that is none of the others.
    #[default]
    OpenAi,
    Anthropic,
    Ollama,
}

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// SDKs that are told to wait for longer come back after a second or two.
const RETRY_MAX: Duration = Duration::from_secs(60);
/// By how much of the time clients come back later than they are told, at most: those that are rejected together do not come back together.
const JITTER: f64 = 0.25;

// === impl LlmApi ===

impl LlmApi {
    pub(crate) fn of(uri: &Uri, headers: &HeaderMap) -> Self {
        let path = uri.path();
        if headers.contains_key("anthropic-version") || path.ends_with("/v1/messages") {
            Self::Anthropic
        } else if path.contains("/api/") {
            Self::Ollama
        } else {
            Self::OpenAi
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
}

/// Tells a client of an SDK when to come back: `random` is from 0 to 1. It does not come back by itself if the request will not be let in
/// within the time that SDKs wait.
pub(super) fn set_retry_headers(headers: &mut HeaderMap, wait: Duration, random: f64) {
    if wait > RETRY_MAX {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    let wait = wait.clamp(Duration::from_millis(100), RETRY_MAX);
    let wait = wait.mul_f64(1.0 + JITTER * random.clamp(0.0, 1.0)).min(RETRY_MAX);
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
        assert_eq!(api("/", None), LlmApi::OpenAi);
    }

    #[test]
    fn clients_are_told_a_time_that_sdks_obey() {
        for (wait_ms, random, milliseconds, seconds, should_retry) in [
            (2000, 0.0, "2000", "2", None),
            (2000, 1.0, "2500", "3", None),
            (0, 0.0, "100", "1", None),
            (59_000, 1.0, "60000", "60", None),
            (61_000, 0.5, "60000", "60", Some("false")),
        ] {
            let mut headers = HeaderMap::new();
            set_retry_headers(&mut headers, Duration::from_millis(wait_ms), random);
            assert_eq!(headers[RETRY_AFTER_MS], milliseconds, "{wait_ms}");
            assert_eq!(headers[RETRY_AFTER], seconds, "{wait_ms}");
            assert_eq!(headers.get(SHOULD_RETRY).map(HeaderValue::as_bytes), should_retry.map(str::as_bytes));
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
