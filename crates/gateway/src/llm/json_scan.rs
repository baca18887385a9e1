//! `JsonScan`: finds a few values in JSON that arrives piece by piece, in constant memory.
//!
//! It is not a validator: after bytes that are not JSON, it understands nothing more and reports nothing. Values after the end of
//! a document begin the next one, so lines of JSON need no special case.

/// Reads JSON of any length. [`feed`](Self::feed) takes the bytes as they come, cut anywhere.
#[derive(Debug)]
pub(super) struct JsonScan {
    state: State,
    /// How many containers are open.
    depth: usize,
    /// For each of them, whether it is an object: one bit each.
    objects: [u64; DEPTH_MAX / 64],
    /// The key at each of the outermost levels.
    path: [Key; PATH_MAX],
    /// The text of a key, a string or a literal, as far as it may matter.
    text: [u8; TEXT_MAX],
    text_length: usize,
    /// Whether `text` is not all of it.
    is_cut: bool,
    /// The hexadecimal digits of an escape.
    unicode: u16,
}

/// Receives the values that are found.
pub(super) trait JsonVisitor {
    /// A value that is no container, at one of the paths that are short enough.
    fn scalar(&mut self, path: &[Key], value: Scalar<'_>);

    /// An object or an array begins, at one of the paths that are short enough.
    fn container(&mut self, _path: &[Key]) {}

    /// A document has ended.
    fn end_document(&mut self) {}
}

/// A value that is no container.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scalar<'a> {
    /// The text, decoded. None if it is too long to be of interest or no UTF-8.
    Text(Option<&'a str>),
    Number(f64),
    Bool(bool),
    Null,
}

/// A step of a path: a name that matters, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Other,
    /// An element of an array.
    Item,
    CacheCreationInputTokens,
    CacheReadInputTokens,
    CachedTokens,
    Choices,
    CompletionTokens,
    Done,
    EvalCount,
    FinishReason,
    InputTokens,
    InputTokensDetails,
    MaxCompletionTokens,
    MaxOutputTokens,
    MaxTokens,
    Message,
    Model,
    NumPredict,
    /// A name for a part of a prompt whose tokens are not in its text: images, sound, files, earlier messages.
    Opaque,
    Options,
    OutputTokens,
    PromptEvalCount,
    PromptTokens,
    PromptTokensDetails,
    Response,
    Role,
    Stream,
    StreamOptions,
    /// A name for a description of tools, which is not a prompt and may have any names inside.
    Tools,
    Type,
    Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// A value comes, or the end of an array.
    Value,
    /// A key comes, or the end of an object.
    Key,
    KeyText(Escape),
    Colon,
    Text(Escape),
    /// `true`, `null` or a number.
    Literal,
    /// This is no JSON, or too deep.
    Lost,
}

/// How far a backslash and what follows has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    Begun,
    /// So many hexadecimal digits are left.
    Unicode(u8),
}

/// Deeper documents are not understood.
const DEPTH_MAX: usize = 512;
/// Paths that matter are no longer than this: `choices[].delta.tool_calls[].function.arguments` has seven steps.
const PATH_MAX: usize = 8;
/// Names of models are no longer than this.
pub(super) const TEXT_MAX: usize = 256;

// === impl Key ===

impl Key {
    fn of(name: &[u8]) -> Self {
        match name {
            b"cache_creation_input_tokens" => Self::CacheCreationInputTokens,
            b"cache_read_input_tokens" => Self::CacheReadInputTokens,
            b"cached_tokens" => Self::CachedTokens,
            b"choices" => Self::Choices,
            b"completion_tokens" => Self::CompletionTokens,
            b"done" => Self::Done,
            b"eval_count" => Self::EvalCount,
            b"finish_reason" => Self::FinishReason,
            b"input_tokens" => Self::InputTokens,
            b"input_tokens_details" => Self::InputTokensDetails,
            b"max_completion_tokens" => Self::MaxCompletionTokens,
            b"max_output_tokens" => Self::MaxOutputTokens,
            b"max_tokens" => Self::MaxTokens,
            b"message" => Self::Message,
            b"model" => Self::Model,
            b"num_predict" => Self::NumPredict,
            b"image"
            | b"image_url"
            | b"images"
            | b"input_image"
            | b"input_audio"
            | b"audio"
            | b"file"
            | b"file_id"
            | b"source"
            | b"conversation"
            | b"previous_response_id" => Self::Opaque,
            b"options" => Self::Options,
            b"output_tokens" => Self::OutputTokens,
            b"prompt_eval_count" => Self::PromptEvalCount,
            b"prompt_tokens" => Self::PromptTokens,
            b"prompt_tokens_details" => Self::PromptTokensDetails,
            b"response" => Self::Response,
            b"role" => Self::Role,
            b"stream" => Self::Stream,
            b"stream_options" => Self::StreamOptions,
            b"tools" | b"functions" | b"metadata" | b"response_format" | b"text" => Self::Tools,
            b"type" => Self::Type,
            b"usage" => Self::Usage,
            _ => Self::Other,
        }
    }
}

// === impl JsonScan ===

impl JsonScan {
    /// Begins anew, before a document.
    pub(super) fn reset(&mut self) {
        (self.state, self.depth, self.text_length, self.is_cut) = (State::Value, 0, 0, false);
    }

    /// Whether all documents that have begun are complete.
    pub(super) fn is_between_documents(&self) -> bool {
        self.depth == 0 && self.state == State::Value
    }

    /// Whether it has met something that it does not understand.
    pub(super) fn is_lost(&self) -> bool {
        self.state == State::Lost
    }

    /// Takes the next bytes.
    pub(super) fn feed(&mut self, bytes: &[u8], visitor: &mut impl JsonVisitor) {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = match self.state {
                State::Lost => return,
                // The bulk of a document are texts: they are taken at once up to the next byte that means something.
                State::Text(Escape::None) | State::KeyText(Escape::None) if !matches!(byte, b'"' | b'\\') => {
                    let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
                    let (text, after) = rest.split_at(length);
                    self.keep(text);
                    after
                }
                _ => {
                    self.step(byte, visitor);
                    after
                }
            };
        }
    }

    /// The input ends: a number at the end of the bytes is complete.
    #[cfg(test)]
    fn finish(&mut self, visitor: &mut impl JsonVisitor) {
        if self.state == State::Literal {
            self.step(b' ', visitor);
        }
    }

    fn step(&mut self, byte: u8, visitor: &mut impl JsonVisitor) {
        match self.state {
            State::Lost => {}
            State::Value => self.begin_value(byte, visitor),
            State::Key => match byte {
                b' ' | b'\t' | b'\r' | b'\n' | b',' => {}
                b'"' => self.begin_text(State::KeyText(Escape::None)),
                b'}' => self.close(true, visitor),
                _ => self.state = State::Lost,
            },
            State::KeyText(escape) => match self.text_step(escape, byte) {
                Some(escape) => self.state = State::KeyText(escape),
                None => {
                    let key = if self.is_cut { Key::Other } else { Key::of(&self.text[..self.text_length]) };
                    self.set_key(key);
                    self.state = State::Colon;
                }
            },
            State::Colon => match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b':' => self.state = State::Value,
                _ => self.state = State::Lost,
            },
            State::Text(escape) => match self.text_step(escape, byte) {
                Some(escape) => self.state = State::Text(escape),
                None => {
                    let text = std::str::from_utf8(&self.text[..self.text_length]).ok().filter(|_| !self.is_cut);
                    if let Some(path) = self.path.get(..self.depth) {
                        visitor.scalar(path, Scalar::Text(text));
                    }
                    self.end_value(visitor);
                }
            },
            State::Literal => match byte {
                b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.' => self.keep(&[byte]),
                _ => {
                    self.end_literal(visitor);
                    // The byte after a literal has a meaning of its own.
                    if self.state != State::Lost {
                        self.step(byte, visitor);
                    }
                }
            },
        }
    }

    fn begin_value(&mut self, byte: u8, visitor: &mut impl JsonVisitor) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' => {}
            b'"' => self.begin_text(State::Text(Escape::None)),
            b'{' | b'[' => {
                if let Some(path) = self.path.get(..self.depth) {
                    visitor.container(path);
                }
                self.open(byte == b'{');
            }
            b']' => self.close(false, visitor),
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                self.begin_text(State::Literal);
                self.keep(&[byte]);
            }
            _ => self.state = State::Lost,
        }
    }

    fn begin_text(&mut self, state: State) {
        (self.state, self.text_length, self.is_cut) = (state, 0, false);
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = TEXT_MAX - self.text_length;
        let kept = &bytes[..bytes.len().min(room)];
        self.text[self.text_length..self.text_length + kept.len()].copy_from_slice(kept);
        self.text_length += kept.len();
        self.is_cut |= bytes.len() > room;
    }

    /// A byte of a text. None if it ends the text.
    fn text_step(&mut self, escape: Escape, byte: u8) -> Option<Escape> {
        match (escape, byte) {
            (Escape::None, b'"') => return None,
            (Escape::None, b'\\') => return Some(Escape::Begun),
            (Escape::Begun, b'u') => {
                self.unicode = 0;
                return Some(Escape::Unicode(4));
            }
            (Escape::None, _) | (Escape::Begun, b'"' | b'\\' | b'/') => self.keep(&[byte]),
            // A line break or the like: in no name that matters.
            (Escape::Begun, _) => self.is_cut = true,
            (Escape::Unicode(left), _) => {
                let digit = char::from(byte).to_digit(16).and_then(|digit| u16::try_from(digit).ok());
                self.is_cut |= digit.is_none();
                self.unicode = self.unicode << 4 | digit.unwrap_or(0);
                if left > 1 {
                    return Some(Escape::Unicode(left - 1));
                }
                // One half of a pair is no character; names of models have none of them.
                match char::from_u32(u32::from(self.unicode)) {
                    Some(character) => self.keep(character.encode_utf8(&mut [0; 4]).as_bytes()),
                    None => self.is_cut = true,
                }
            }
        }
        Some(Escape::None)
    }

    fn end_literal(&mut self, visitor: &mut impl JsonVisitor) {
        let text = std::str::from_utf8(&self.text[..self.text_length]).unwrap_or_default();
        let value = match text {
            _ if self.is_cut => None,
            "true" => Some(Scalar::Bool(true)),
            "false" => Some(Scalar::Bool(false)),
            "null" => Some(Scalar::Null),
            number => number.parse().ok().filter(|number: &f64| number.is_finite()).map(Scalar::Number),
        };
        let Some(value) = value else {
            self.state = State::Lost;
            return;
        };
        if let Some(path) = self.path.get(..self.depth) {
            visitor.scalar(path, value);
        }
        self.end_value(visitor);
    }

    fn open(&mut self, is_object: bool) {
        if self.depth == DEPTH_MAX {
            self.state = State::Lost;
            return;
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        if is_object {
            self.objects[word] |= bit;
        } else {
            self.objects[word] &= !bit;
        }
        self.depth += 1;
        self.set_key(if is_object { Key::Other } else { Key::Item });
        self.state = if is_object { State::Key } else { State::Value };
    }

    fn close(&mut self, is_object: bool, visitor: &mut impl JsonVisitor) {
        if self.depth == 0 || self.is_in_object() != is_object {
            self.state = State::Lost;
            return;
        }
        self.depth -= 1;
        self.end_value(visitor);
    }

    fn end_value(&mut self, visitor: &mut impl JsonVisitor) {
        if self.depth == 0 {
            visitor.end_document();
        }
        self.state = if self.depth > 0 && self.is_in_object() { State::Key } else { State::Value };
    }

    fn is_in_object(&self) -> bool {
        let innermost = self.depth - 1;
        self.objects[innermost / 64] & 1 << (innermost % 64) != 0
    }

    fn set_key(&mut self, key: Key) {
        if let Some(step) = self.path.get_mut(self.depth - 1) {
            *step = key;
        }
    }
}

impl Default for JsonScan {
    fn default() -> Self {
        Self {
            state: State::Value,
            depth: 0,
            objects: [0; DEPTH_MAX / 64],
            path: [Key::Other; PATH_MAX],
            text: [0; TEXT_MAX],
            text_length: 0,
            is_cut: false,
            unicode: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Default, PartialEq, Debug)]
    struct Seen(Vec<String>);

    impl JsonVisitor for Seen {
        fn scalar(&mut self, path: &[Key], value: Scalar<'_>) {
            self.0.push(format!("{path:?} {value:?}"));
        }

        fn end_document(&mut self) {
            self.0.push("end".to_owned());
        }
    }

    fn scan<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Seen, bool) {
        let (mut scan, mut seen) = (JsonScan::default(), Seen::default());
        for piece in pieces {
            scan.feed(piece, &mut seen);
        }
        scan.finish(&mut seen);
        (seen, scan.is_lost())
    }

    /// The same by a parser that builds a tree.
    fn walk(path: &mut Vec<Key>, value: &Value, seen: &mut Seen) {
        let scalar = match value {
            Value::Array(items) => {
                path.push(Key::Item);
                for item in items {
                    walk(path, item, seen);
                }
                path.pop();
                return;
            }
            Value::Object(members) => {
                for (key, value) in members {
                    path.push(Key::of(key.as_bytes()));
                    walk(path, value, seen);
                    path.pop();
                }
                return;
            }
            Value::String(text) => Scalar::Text(Some(text).filter(|text| text.len() <= TEXT_MAX).map(String::as_str)),
            Value::Number(number) => Scalar::Number(number.as_f64().unwrap()),
            Value::Bool(value) => Scalar::Bool(*value),
            Value::Null => Scalar::Null,
        };
        if path.len() <= PATH_MAX {
            seen.scalar(path, scalar);
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            // Texts without control characters: escapes of those are not decoded.
            "[ -~é\u{4e00}]{0,8}".prop_map(Value::from),
            "x{250,260}".prop_map(Value::from),
        ];
        let name = prop_oneof!["usage", "model", "choices", "[a-z/]{0,5}"];
        scalar.prop_recursive(9, 64, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::btree_map(name.clone(), inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn finds_what_a_parser_finds_however_the_bytes_are_cut(document in any_json(), cuts in prop::collection::vec(1..9_usize, 0..40)) {
            let mut expected = Seen::default();
            walk(&mut Vec::new(), &document, &mut expected);
            expected.end_document();
            for text in [document.to_string(), serde_json::to_string_pretty(&document).unwrap()] {
                prop_assert_eq!(scan([text.as_bytes()]), (Seen(expected.0.clone()), false));
                let (mut pieces, mut rest) = (Vec::new(), text.as_bytes());
                for cut in &cuts {
                    let (piece, after) = rest.split_at((*cut).min(rest.len()));
                    pieces.push(piece);
                    rest = after;
                }
                pieces.push(rest);
                prop_assert_eq!(scan(pieces), (Seen(expected.0.clone()), false));
            }
        }

        #[test]
        fn any_bytes_are_taken(bytes in prop::collection::vec(prop_oneof![any::<u8>(), prop::sample::select(b"{}[]\":,\\u01tn ".to_vec())], 0..200), cut in 0..200_usize) {
            let (first, second) = bytes.split_at(cut.min(bytes.len()));
            prop_assert_eq!(scan([first, second]), scan([&bytes[..]]));
        }
    }

    #[test]
    fn deep_and_endless_documents_are_not_understood() {
        let (seen, is_lost) = scan([&b"[".repeat(100_000)[..]]);
        assert!(is_lost && seen.0.is_empty());
        let deep = [b"[".repeat(DEPTH_MAX), b"]".repeat(DEPTH_MAX)].concat();
        assert_eq!(scan([&deep[..]]), (Seen(vec!["end".to_owned()]), false));
        let (seen, _) = scan([&b"{\"model\":\""[..], &b"x".repeat(1 << 20), b"\"}"]);
        assert_eq!(seen.0, ["[Model] Text(None)", "end"]);
        assert!(size_of::<JsonScan>() <= 512, "{}", size_of::<JsonScan>());
    }

    #[test]
    fn documents_follow_each_other_and_escapes_are_decoded() {
        let (seen, is_lost) = scan([&b"{\"model\":\"a\\/b\\u002fc\"}\n{\"done\":true} 17"[..]]);
        assert!(!is_lost);
        assert_eq!(
            seen.0,
            ["[Model] Text(Some(\"a/b/c\"))", "end", "[Done] Bool(true)", "end", "[] Number(17.0)", "end"]
        );
        assert_eq!(scan([json!({"usage": null}).to_string().as_bytes()]).0.0, ["[Usage] Null", "end"]);
    }
}
