//! `RevokedEnd`: how the response of a request ends that is told to end (LM-7).

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};

use crate::proxy::error_response::LlmApi;

/// Follows a response, to know whether an error can be appended to it.
#[derive(Debug)]
pub(super) struct RevokedEnd {
    /// The API of the stream; `None` if the response is not a stream that could have an error in it.
    stream: Option<(LlmApi, Framing)>,
    /// The last bytes that have passed.
    tail: [u8; TAIL],
    has_begun: bool,
}

/// The separator between the events of a stream.
#[derive(Debug, Clone, Copy)]
enum Framing {
    /// An empty line.
    ServerSentEvents,
    /// The end of a line.
    Lines,
}

/// An empty line has so many bytes at most, with the end of the line before it.
const TAIL: usize = 4;

// === impl RevokedEnd ===

impl RevokedEnd {
    /// For a response with these headers, of which clients of this API understand errors.
    pub(super) fn new(api: Option<LlmApi>, headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let framing = match api {
            _ if headers.contains_key(CONTENT_ENCODING) => None,
            Some(LlmApi::OpenAi | LlmApi::Anthropic) if content_type.starts_with(b"text/event-stream") => {
                Some(Framing::ServerSentEvents)
            }
            Some(LlmApi::Ollama) if content_type.starts_with(b"application/x-ndjson") => Some(Framing::Lines),
            _ => None,
        };
        Self { stream: api.zip(framing), tail: [0; TAIL], has_begun: false }
    }

    /// Some of the response passes.
    pub(super) fn note(&mut self, data: &[u8]) {
        let kept = &data[data.len().saturating_sub(TAIL)..];
        self.tail.rotate_left(kept.len());
        self.tail[TAIL - kept.len()..].copy_from_slice(kept);
        self.has_begun |= !data.is_empty();
    }

    /// Whether an event has begun that has not ended, in a stream that could end with an error.
    pub(super) fn is_within_event(&self) -> bool {
        self.stream.is_some() && self.last_event().is_none()
    }

    /// The error at the end of the stream; none if the response can only be cut off.
    pub(super) fn last_event(&self) -> Option<Bytes> {
        let (api, framing) = self.stream?;
        let is_between = match framing {
            Framing::ServerSentEvents => {
                self.tail.ends_with(b"\n\n") || self.tail.ends_with(b"\n\r\n") || self.tail.ends_with(b"\r\r")
            }
            Framing::Lines => self.tail.ends_with(b"\n"),
        };
        (is_between || !self.has_begun).then(|| api.revoked_event().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(api: LlmApi, content_type: &'static str, pieces: &[&str]) -> Option<Bytes> {
        let headers = [(CONTENT_TYPE, HeaderValue::from_static(content_type))].into_iter().collect();
        let mut end = RevokedEnd::new(Some(api), &headers);
        for piece in pieces {
            end.note(piece.as_bytes());
        }
        assert_eq!(end.is_within_event(), end.stream.is_some() && end.last_event().is_none());
        end.last_event()
    }

    #[test]
    fn lm_7_errors_come_between_events() {
        let sse = "text/event-stream; charset=utf-8";
        let error = r#"{"error":{"code":null,"message":"the request was ended because others need its seats; try again","param":null,"type":"server_error"}}"#;
        for pieces in [&[][..], &["data: 1\n\n"], &["data: 1\n", "\n"], &["data: 1\r\n\r", "\n"], &["data: 1\n\n", ""]]
        {
            assert_eq!(end(LlmApi::OpenAi, sse, pieces).unwrap(), format!("data: {error}\n\n"), "{pieces:?}");
        }
        for pieces in [&["d"][..], &["data: 1\n"], &["data: 1\n\n", "data"], &["\n\nx"]] {
            assert_eq!(end(LlmApi::OpenAi, sse, pieces), None, "{pieces:?}");
        }
        let anthropic = end(LlmApi::Anthropic, sse, &["event: ping\ndata: {}\n\n"]).unwrap();
        let text = str::from_utf8(&anthropic).unwrap();
        assert!(text.starts_with("event: error\ndata: {") && text.contains(r#""type":"overloaded_error""#), "{text}");
        assert!(
            end(LlmApi::Ollama, "application/x-ndjson", &["{}\n"]).unwrap().starts_with(b"{\"error\":\"the request")
        );
        assert_eq!(end(LlmApi::Ollama, "application/x-ndjson", &["{}\n{"]), None);
        assert_eq!(end(LlmApi::OpenAi, "application/json", &[]), None);
        assert!(!RevokedEnd::new(None, &HeaderMap::new()).is_within_event());
    }
}
