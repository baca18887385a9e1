//! `RequestFacts`: the facts in the body of a request: the model, how long the response may get, whether it is a stream (LM-1).

use super::json_scan::{JsonScan, JsonVisitor, Key, Scalar};

/// The facts in the body of a request, as far as it has arrived and is understood.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RequestFacts {
    /// The name of the model; empty if it says none.
    pub(crate) model: Box<str>,
    /// How many tokens the response may have.
    pub(crate) output_max: Option<f64>,
    /// Whether the response comes as a stream, if the request says so.
    pub(crate) is_stream: Option<bool>,
    /// Whether the tokens of the prompt follow from its text: it has no images, sound or files, and refers to nothing that was said before.
    pub(crate) is_text: bool,
}

// === impl RequestFacts ===

impl RequestFacts {
    /// Reads the beginning of a body, or all of it.
    pub(crate) fn read(body: &[u8]) -> Self {
        let mut facts = Self::default();
        JsonScan::default().feed(body, &mut facts);
        facts
    }
}

impl Default for RequestFacts {
    fn default() -> Self {
        Self { model: Box::default(), output_max: None, is_stream: None, is_text: true }
    }
}

impl JsonVisitor for RequestFacts {
    // Of names that come twice the last one counts, as it does for most parsers.
    fn scalar(&mut self, path: &[Key], value: Scalar<'_>) {
        let is_opaque = path.contains(&Key::Opaque) && path.first() != Some(&Key::Tools) && value != Scalar::Null;
        self.is_text &= !is_opaque;
        match (path, value) {
            ([Key::Model], Scalar::Text(model)) => {
                self.model = model.filter(|model| is_name(model)).unwrap_or_default().into();
            }
            ([Key::Stream], Scalar::Bool(is_stream)) => self.is_stream = Some(is_stream),
            (
                [Key::MaxTokens | Key::MaxCompletionTokens | Key::MaxOutputTokens] | [Key::Options, Key::NumPredict],
                Scalar::Number(tokens),
            ) if tokens >= 1.0 => self.output_max = Some(tokens),
            _ => {}
        }
    }
}

/// Whether this can be the name of a model: it ends up in logs and labels.
fn is_name(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(model: &str, output_max: Option<f64>, is_stream: Option<bool>) -> RequestFacts {
        RequestFacts { model: model.into(), output_max, is_stream, is_text: true }
    }

    #[test]
    fn prompts_of_more_than_text_are_noticed() {
        for (body, is_text) in [
            (
                r#"{"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"tools":[{"image":{"type":"x"}}]}"#,
                true,
            ),
            (r#"{"model":"m","input":"x","previous_response_id":null}"#, true),
            (r#"{"model":"m","input":"x","previous_response_id":"resp_1"}"#, false),
            (r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:x"}}]}]}"#, false),
            (r#"{"messages":[{"content":[{"type":"image","source":{"type":"base64","data":"x"}}]}]}"#, false),
            (r#"{"model":"llava","prompt":"x","images":["aGk="]}"#, false),
        ] {
            assert_eq!(RequestFacts::read(body.as_bytes()).is_text, is_text, "{body}");
        }
    }

    #[test]
    fn each_api_says_it_in_its_own_way() {
        for (body, expected) in [
            // OpenAI's packages send the messages first.
            (
                r#"{"messages":[{"role":"user","content":"a \"model\": b"}],"model":"m","max_completion_tokens":50,"stream":true}"#,
                facts("m", Some(50.0), Some(true)),
            ),
            (r#"{"model":"m","prompt":"x","max_tokens":16,"stream":false}"#, facts("m", Some(16.0), Some(false))),
            (r#"{"model":"m","input":"x","max_output_tokens":9}"#, facts("m", Some(9.0), None)),
            (r#"{"model":"m","input":["x","y"]}"#, facts("m", None, None)),
            (r#"{"model":"llama3:8b","prompt":"x","options":{"num_predict":7}}"#, facts("llama3:8b", Some(7.0), None)),
            // Without a limit.
            (r#"{"model":"m","options":{"num_predict":-1},"max_tokens":null}"#, facts("m", None, None)),
            // A name that is elsewhere is another name.
            (r#"{"metadata":{"model":"x","stream":true},"tools":[{"model":"y"}]}"#, facts("", None, None)),
            (r#"{"model":"a","model":"b"}"#, facts("b", None, None)),
            (r#"{"model":"m","stream":true,"messages":[{"content":"#, facts("m", None, Some(true))),
            ("{\"model\":\"a\\u0007b\"}", facts("", None, None)),
            (r#"{"model":17,"stream":"yes"}"#, facts("", None, None)),
            ("--boundary\r\nmodel=m", facts("", None, None)),
            ("", facts("", None, None)),
        ] {
            assert_eq!(RequestFacts::read(body.as_bytes()), expected, "{body}");
        }
    }
}
