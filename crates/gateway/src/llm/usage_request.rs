//! Asks servers for the usage of a stream if the client has not asked and the operator allows it (LM-3).

use super::json_scan::{JsonScan, JsonVisitor, Key, Scalar};

/// The field that is inserted behind the first brace of a request.
pub(crate) const ASKS_FOR_USAGE: &[u8] = br#""stream_options":{"include_usage":true},"#;

/// The fields of a request that concern its stream.
#[derive(Debug, Default)]
struct StreamWishes {
    is_stream: bool,
    has_options: bool,
    documents: usize,
}

/// Where [`ASKS_FOR_USAGE`] is inserted into a complete body, if the request is for a stream that has usage only on request.
///
/// Chat and completions of `OpenAI` have such streams. A request with `stream_options` is left as the client wrote it.
pub(crate) fn place_to_ask(path: &str, body: &[u8]) -> Option<usize> {
    if !path.ends_with("/completions") {
        return None;
    }
    let brace = body.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|first| body[*first] == b'{')?;
    let (mut scan, mut wishes) = (JsonScan::default(), StreamWishes::default());
    scan.feed(body, &mut wishes);
    let is_one_document = wishes.documents == 1 && scan.is_between_documents();
    (is_one_document && wishes.is_stream && !wishes.has_options).then_some(brace + 1)
}

impl JsonVisitor for StreamWishes {
    fn scalar(&mut self, path: &[Key], value: Scalar<'_>) {
        match path {
            [Key::Stream] => self.is_stream = value == Scalar::Bool(true),
            [Key::StreamOptions] => self.has_options = true,
            _ => {}
        }
    }

    fn container(&mut self, path: &[Key]) {
        self.has_options |= path == [Key::StreamOptions];
    }

    fn end_document(&mut self) {
        self.documents += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_asks_once_and_stays_json() {
        for (body, expected) in [
            (
                r#" {"model":"m","stream":true}"#,
                r#" {"stream_options":{"include_usage":true},"model":"m","stream":true}"#,
            ),
            (r#"{"stream":true,"stream_options":{"include_usage":false}}"#, ""),
            (r#"{"stream":true,"stream_options":null}"#, ""),
            (r#"{"stream":true,"stream\u005foptions":{}}"#, ""),
            (r#"{"stream":false}"#, ""),
            (r#"{"model":"m"}"#, ""),
            (r#"{"stream":true"#, ""),
            (r#"{"stream":true} {"a":1}"#, ""),
            (r#"{"stream":true} x"#, ""),
            (r#"[{"stream":true}]"#, ""),
            ("", ""),
        ] {
            let place = place_to_ask("/v1/chat/completions", body.as_bytes());
            let asking = place.map(|at| {
                let text = std::str::from_utf8(ASKS_FOR_USAGE).unwrap();
                format!("{}{text}{}", &body[..at], &body[at..])
            });
            assert_eq!(asking.clone().unwrap_or_default(), expected, "{body}");
            assert!(asking.is_none_or(|body| serde_json::from_str::<serde_json::Value>(&body).is_ok()));
        }
        let body = br#"{"stream":true}"#;
        assert_eq!(place_to_ask("/openai/v1/completions", body), Some(1));
        assert_eq!(place_to_ask("/v1/messages", body), None);
    }
}
