//! `ResponseReader`: counts the events of a response and finds the usage in it, as its bytes pass (LM-3, LM-4).

use super::json_scan::{JsonScan, JsonVisitor, Key, Scalar};
use super::usage::Usage;

/// Reads the body of a response, cut anywhere. Nothing of it is kept.
#[derive(Debug)]
pub(crate) struct ResponseReader {
    framing: Framing,
    scan: JsonScan,
    seen: Seen,
}

/// The figures found so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Seen {
    pub(crate) usage: Usage,
    /// Events that have text or a part of it.
    pub(crate) events: u64,
    /// The events since the server last reported its usage.
    pub(crate) events_since_usage: u64,
    document: Document,
}

/// The figures found in the current document.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Document {
    has_output_count: bool,
    /// Whether a choice has some text: chunks with the role and with the end of a choice have none.
    has_choice: bool,
    /// Whether it is the last of Ollama's.
    is_done: Option<bool>,
    kind: EventType,
}

/// The kind of an event, by its `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum EventType {
    #[default]
    Unsaid,
    /// A part of the response.
    Delta,
    Other,
}

/// How documents follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// A body of one document.
    Document,
    /// A document in each line.
    Lines,
    /// Server-sent events: documents are in lines with `data:`.
    Events(Line),
}

/// The position in a line of server-sent events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// So much of `data:` is there.
    Name(usize),
    /// Right after `data:`, where one space means nothing.
    DataBegins,
    Data,
    /// Another field, or a comment.
    Skipped,
}

const DATA: &[u8] = b"data:";

// === impl ResponseReader ===

impl ResponseReader {
    /// For a body of this content type. None if there is nothing to count in it.
    pub(crate) fn new(content_type: &str) -> Option<Self> {
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let framing = match media_type.as_str() {
            "text/event-stream" => Framing::Events(Line::Name(0)),
            "application/json" => Framing::Document,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Framing::Lines,
            _ => return None,
        };
        Some(Self { framing, scan: JsonScan::default(), seen: Seen::default() })
    }

    /// Whether the response is a stream of events.
    pub(crate) fn is_stream(&self) -> bool {
        self.framing != Framing::Document || self.seen.events > 1
    }

    /// The figures found so far.
    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Takes the next bytes of the body.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Self { framing, scan, seen } = self;
        match framing {
            Framing::Document | Framing::Lines => scan.feed(bytes, seen),
            Framing::Events(line) => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    rest = line.take(rest, scan, seen);
                }
            }
        }
    }
}

// === impl Line ===

impl Line {
    /// Takes some bytes, at least one, and returns the rest.
    fn take<'a>(&mut self, bytes: &'a [u8], scan: &mut JsonScan, seen: &mut Seen) -> &'a [u8] {
        let Some((&byte, after)) = bytes.split_first() else { return bytes };
        match *self {
            Self::Name(_) if matches!(byte, b'\n' | b'\r') => *self = Self::Name(0),
            Self::Name(length) if byte == DATA[length] => {
                *self = if length + 1 == DATA.len() { Self::DataBegins } else { Self::Name(length + 1) };
            }
            Self::Name(_) => *self = Self::Skipped,
            Self::DataBegins => {
                // A document begins with the line: those that take several lines are not known here.
                scan.reset();
                seen.document = Document::default();
                *self = Self::Data;
                if byte != b' ' {
                    return bytes;
                }
            }
            Self::Data | Self::Skipped => {
                let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                if *self == Self::Data {
                    scan.feed(line, seen);
                }
                if end.is_some() {
                    *self = Self::Name(0);
                }
                return rest;
            }
        }
        after
    }
}

// === impl Seen ===

impl JsonVisitor for Seen {
    fn scalar(&mut self, path: &[Key], value: Scalar<'_>) {
        let document = &mut self.document;
        match (path, value) {
            ([Key::Choices, Key::Item, .., Key::Role | Key::FinishReason], _) => {}
            ([Key::Choices, Key::Item, ..], Scalar::Text(text)) => {
                document.has_choice |= text.is_none_or(|text| !text.is_empty());
            }
            ([Key::Done], Scalar::Bool(is_done)) => document.is_done = Some(is_done),
            ([Key::Type], Scalar::Text(kind)) => {
                let is_delta = kind.is_some_and(|kind| kind.ends_with("delta") && kind != "message_delta");
                document.kind = if is_delta { EventType::Delta } else { EventType::Other };
            }
            _ => document.has_output_count |= self.usage.note(path, value),
        }
    }

    fn end_document(&mut self) {
        let document = std::mem::take(&mut self.document);
        let has_text = match document.kind {
            EventType::Delta => true,
            EventType::Other => false,
            EventType::Unsaid => document.has_choice || document.is_done == Some(false),
        };
        if has_text {
            self.events += 1;
            self.events_since_usage += 1;
        }
        if document.has_output_count {
            self.events_since_usage = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SSE: &str = "text/event-stream; charset=utf-8";

    fn read(content_type: &str, body: &str) -> Seen {
        let mut reader = ResponseReader::new(content_type).unwrap();
        reader.feed(body.as_bytes());
        *reader.seen()
    }

    /// Events, events since the usage, prompt, cached and output.
    fn figures(seen: &Seen) -> (u64, u64, Option<f64>, f64, Option<f64>) {
        (seen.events, seen.events_since_usage, seen.usage.prompt(), seen.usage.cached(), seen.usage.output())
    }

    const CHAT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
        data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: {\"id\":\"1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n\
        : a comment\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"data: {}\"}}]}\r\n\r\n\
        data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7,\
        \"prompt_tokens_details\":{\"cached_tokens\":60}}}\n\ndata: [DONE]\n\n";

    #[test]
    fn openai() {
        assert_eq!(figures(&read(SSE, CHAT)), (2, 0, Some(100.0), 60.0, Some(7.0)));
        // Usage in each chunk.
        let chunk = |tokens| {
            format!(
                "data: {{\"choices\":[{{\"text\":\"x\"}}],\"usage\":{{\"prompt_tokens\":5,\"completion_tokens\":{tokens}}}}}\n\n"
            )
        };
        assert_eq!(figures(&read(SSE, &(chunk(3) + &chunk(6)))), (2, 0, Some(5.0), 0.0, Some(6.0)));
        // The arguments of a tool call are text of the response.
        let call = |text: &str| {
            format!(
                "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{text}\"}}}}]}}}}]}}\n\n"
            )
        };
        assert_eq!(figures(&read(SSE, &(call("{") + &call("a") + &call("")))), (2, 2, None, 0.0, None));
        // Without usage.
        assert_eq!(figures(&read(SSE, "data: {\"choices\":[{\"text\":\"x\"}]}\n\n")), (1, 1, None, 0.0, None));
        let body = r#"{"object":"chat.completion","choices":[{"index":0,"message":{"content":"usage"}}],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21}}"#;
        assert_eq!(figures(&read("application/json", body)), (1, 0, Some(9.0), 0.0, Some(12.0)));
        let embeddings = r#"{"data":[{"embedding":[0.1,0.2]}],"usage":{"prompt_tokens":8,"total_tokens":8}}"#;
        assert_eq!(figures(&read("application/json", embeddings)), (0, 0, Some(8.0), 0.0, None));
    }

    #[test]
    fn openai_responses() {
        let body = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\n\n\
            event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n\
            event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":36,\
            \"input_tokens_details\":{\"cached_tokens\":6},\"output_tokens\":87}}}\n\n";
        assert_eq!(figures(&read(SSE, body)), (1, 0, Some(36.0), 6.0, Some(87.0)));
    }

    #[test]
    fn anthropic() {
        let body = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\
            \"cache_creation_input_tokens\":5,\"cache_read_input_tokens\":70,\"output_tokens\":1}}}\n\n\
            event: ping\ndata: {\"type\": \"ping\"}\n\n\
            event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n";
        assert_eq!(figures(&read(SSE, body)), (1, 1, Some(100.0), 70.0, Some(1.0)));
        let end = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\
            \"usage\":{\"output_tokens\":15}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        assert_eq!(figures(&read(SSE, &(body.to_owned() + end))), (1, 0, Some(100.0), 70.0, Some(15.0)));
    }

    #[test]
    fn ollama() {
        let body = "{\"model\":\"m\",\"response\":\"a\",\"done\":false}\n{\"model\":\"m\",\"message\":{\"content\":\"b\"},\"done\":false}\n\
            {\"done\":true,\"prompt_eval_count\":26,\"eval_count\":298}\n";
        assert_eq!(figures(&read("application/x-ndjson", body)), (2, 0, Some(26.0), 0.0, Some(298.0)));
    }

    #[test]
    fn hostile_streams_are_counted_as_far_as_they_are_understood() {
        assert!(ResponseReader::new("text/html").is_none() && ResponseReader::new("").is_none());
        for body in ["data:", "data: {{{{\n\n", "data: {\"usage\":{\"completion_tokens\":1e300}}\n\n", "\0\u{1}\r\r\r"]
        {
            assert_eq!(figures(&read(SSE, body)), (0, 0, None, 0.0, None), "{body}");
        }
        // A malformed line does not affect other lines.
        assert_eq!(
            figures(&read(SSE, &("data: {\"usage\": [}\n\n".to_owned() + CHAT))),
            (2, 0, Some(100.0), 60.0, Some(7.0))
        );
        let endless = format!("data: {}\n\n{CHAT}", "[".repeat(1 << 20));
        assert_eq!(figures(&read(SSE, &endless)).0, 2);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_bytes_are_cut(cuts in prop::collection::vec(1..60_usize, 0..40)) {
            let mut reader = ResponseReader::new(SSE).unwrap();
            let mut rest = CHAT.as_bytes();
            for cut in cuts {
                let (piece, after) = rest.split_at(cut.min(rest.len()));
                reader.feed(piece);
                rest = after;
            }
            reader.feed(rest);
            prop_assert_eq!(reader.seen(), &read(SSE, CHAT));
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"data:{}\n\r\"".to_vec())], 0..300), cut in 0..300_usize) {
            for content_type in [SSE, "application/json"] {
                let (mut whole, mut pieces) = (ResponseReader::new(content_type).unwrap(), ResponseReader::new(content_type).unwrap());
                whole.feed(&bytes);
                let (first, second) = bytes.split_at(cut.min(bytes.len()));
                pieces.feed(first);
                pieces.feed(second);
                prop_assert_eq!(whole.seen(), pieces.seen());
            }
        }
    }
}
