//! Reads JSON into a tree.
//!
//! `serde_json` could read the text, but not say where a value stands, how a number is written or which names
//! occur twice; the messages of the API need all three.

use super::tree::{Budget, MapBuilder};
use super::{Document, Duplicate, Format, Member, Node, Position, SyntaxError, Value};
use crate::path::Path;

/// Reads one JSON text.
pub fn parse_json(text: &[u8]) -> Result<Document, SyntaxError> {
    let text = super::utf8(text)?;
    let mut parser = JsonParser::new(text);
    parser.skip_white_space();
    let root = parser.value(&Path::Root, 0)?;
    parser.skip_white_space();
    if parser.peek().is_some() {
        return Err(parser.unexpected("the end of the text"));
    }
    Ok(Document { root, duplicates: parser.duplicates, format: Format::Json })
}

struct JsonParser<'a> {
    text: &'a str,
    offset: usize,
    line: u32,
    line_start: usize,
    /// Bytes of this line that continue a character, and so do not count as a column.
    continuation_bytes: usize,
    budget: Budget,
    duplicates: Vec<Duplicate>,
}

// === impl JsonParser ===

impl<'a> JsonParser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            line_start: 0,
            continuation_bytes: 0,
            budget: Budget::default(),
            duplicates: Vec::new(),
        }
    }

    fn position(&self) -> Position {
        let column = self.offset - self.line_start - self.continuation_bytes + 1;
        Position { line: self.line, column: u32::try_from(column).unwrap_or(u32::MAX) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn unexpected(&self, wanted: &str) -> SyntaxError {
        let found = match self.text[self.offset..].chars().next() {
            Some(character) => format!("{character:?}"),
            None => "the end of the text".to_owned(),
        };
        SyntaxError { at: self.position(), message: format!("expected {wanted}, found {found}") }
    }

    fn skip_white_space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.peek() {
            self.offset += 1;
            if byte == b'\n' {
                self.line = self.line.saturating_add(1);
                self.line_start = self.offset;
                self.continuation_bytes = 0;
            }
        }
    }

    fn expect(&mut self, byte: u8, wanted: &str) -> Result<(), SyntaxError> {
        if self.peek() != Some(byte) {
            return Err(self.unexpected(wanted));
        }
        self.offset += 1;
        Ok(())
    }

    fn value(&mut self, path: &Path<'_>, depth: usize) -> Result<Node, SyntaxError> {
        let at = self.position();
        self.budget.spend(1, depth, at)?;
        let value = match self.peek() {
            Some(b'{') => self.map(path, depth)?,
            Some(b'[') => self.list(path, depth)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word("true", Value::Bool(true))?,
            Some(b'f') => self.word("false", Value::Bool(false))?,
            Some(b'n') => self.word("null", Value::Null)?,
            _ => return Err(self.unexpected("a value")),
        };
        Ok(Node { value, at })
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, SyntaxError> {
        if !self.text[self.offset..].starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.offset += word.len();
        Ok(value)
    }

    fn map(&mut self, path: &Path<'_>, depth: usize) -> Result<Value, SyntaxError> {
        let mut map = MapBuilder::default();
        self.offset += 1;
        self.skip_white_space();
        if self.peek() == Some(b'}') {
            self.offset += 1;
            return Ok(Value::Map(Vec::new()));
        }
        loop {
            let key_at = self.position();
            if self.peek() != Some(b'"') {
                return Err(self.unexpected("a name in double quotes"));
            }
            let key = self.string()?;
            self.skip_white_space();
            self.expect(b':', "':' after a name")?;
            self.skip_white_space();
            let value = self.value(&path.child(&key), depth + 1)?;
            map.insert(Member { key, key_at, value }, path, &mut self.duplicates);
            self.skip_white_space();
            if self.peek() == Some(b'}') {
                self.offset += 1;
                return Ok(Value::Map(map.finish()));
            }
            self.expect(b',', "',' or '}' after a member")?;
            self.skip_white_space();
        }
    }

    fn list(&mut self, path: &Path<'_>, depth: usize) -> Result<Value, SyntaxError> {
        let mut items = Vec::new();
        self.offset += 1;
        self.skip_white_space();
        if self.peek() == Some(b']') {
            self.offset += 1;
            return Ok(Value::List(items));
        }
        loop {
            items.push(self.value(&path.index(items.len()), depth + 1)?);
            self.skip_white_space();
            if self.peek() == Some(b']') {
                self.offset += 1;
                return Ok(Value::List(items));
            }
            self.expect(b',', "',' or ']' after an element")?;
            self.skip_white_space();
        }
    }

    fn digits(&mut self) -> Result<(), SyntaxError> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return Err(self.unexpected("a digit"));
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.offset += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, SyntaxError> {
        let start = self.offset;
        if self.peek() == Some(b'-') {
            self.offset += 1;
        }
        if self.peek() == Some(b'0') {
            self.offset += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.offset += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.offset += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.offset += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number(self.text[start..self.offset].into()))
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        self.offset += 1;
        let mut text = String::new();
        let mut plain_from = self.offset;
        loop {
            match self.peek() {
                Some(b'"') => {
                    text.push_str(&self.text[plain_from..self.offset]);
                    self.offset += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    text.push_str(&self.text[plain_from..self.offset]);
                    self.offset += 1;
                    text.push(self.escape()?);
                    plain_from = self.offset;
                }
                Some(byte) if byte >= 0x20 => {
                    // The text is UTF-8, so these bytes and no others continue a character.
                    self.continuation_bytes += usize::from(byte & 0xC0 == 0x80);
                    self.offset += 1;
                }
                _ => return Err(self.unexpected("the end of a text in double quotes")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, SyntaxError> {
        let character = match self.peek() {
            Some(character @ (b'"' | b'\\' | b'/')) => char::from(character),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.offset += 1;
                return self.unicode_escape();
            }
            _ => return Err(self.unexpected("one of \" \\ / b f n r t u after a backslash")),
        };
        self.offset += 1;
        Ok(character)
    }

    /// Half of a surrogate pair without the other half stands for no character; it is read as the replacement
    /// character, as every Kubernetes client has come to expect.
    fn unicode_escape(&mut self) -> Result<char, SyntaxError> {
        let first = self.hex_digits()?;
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let after_first = self.offset;
        if self.text[self.offset..].starts_with("\\u") {
            self.offset += 2;
            let second = self.hex_digits()?;
            if (0xDC00..0xE000).contains(&second) {
                let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
        }
        self.offset = after_first;
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex_digits(&mut self) -> Result<u32, SyntaxError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected("four hexadecimal digits"))?;
            self.offset += 1;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn to_json(node: &Node) -> serde_json::Value {
        match &node.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(literal) => serde_json::from_str(literal).unwrap(),
            Value::String(text) => text.as_str().into(),
            Value::List(items) => items.iter().map(to_json).collect(),
            Value::Map(members) => members.iter().map(|member| (member.key.clone(), to_json(&member.value))).collect(),
        }
    }

    fn error(text: &str) -> String {
        let error = parse_json(text.as_bytes()).unwrap_err();
        format!("{}: {}", error.at, error.message)
    }

    #[test]
    fn errors_say_where_and_what() {
        assert_eq!(error(""), "1:1: expected a value, found the end of the text");
        assert_eq!(error("{\n  \"é\": tru }"), "2:8: expected a value, found 't'");
        assert_eq!(error("{\"a\": 1,}"), "1:9: expected a name in double quotes, found '}'");
        assert_eq!(error("{} trailing"), "1:4: expected the end of the text, found 't'");
        assert_eq!(error("01"), "1:2: expected the end of the text, found '1'");
        assert_eq!(error("\"a\nb\""), "1:3: expected the end of a text in double quotes, found '\\n'");
    }

    #[test]
    fn text_that_is_not_utf_8_is_refused_at_its_place() {
        let error = parse_json(b"{\"a\": \"\xff\"}").unwrap_err();
        assert_eq!((error.at.line, error.at.column, error.message.as_str()), (1, 8, "not UTF-8"));
    }

    #[test]
    fn deep_nesting_and_many_values_are_refused() {
        assert_eq!(error(&"[".repeat(1_000_000)), "1:130: nested more than 128 levels deep");
        let many = format!("[{}0]", "0,".repeat(1 << 20));
        assert!(error(&many).ends_with("holds more than 1048576 values"));
    }

    #[test]
    fn api_17_the_last_of_equal_names_counts_and_all_are_reported() {
        let document = parse_json(b"{\"s\": [{\"a\": 1, \"a\": 2,\n \"a\": 3}], \"s2\": 0}").unwrap();
        assert_eq!(to_json(&document.root), serde_json::json!({"s": [{"a": 3}], "s2": 0}));
        let found: Vec<_> = document.duplicates.iter().map(|d| format!("{} {}", d.at, d.path)).collect();
        assert_eq!(found, ["1:17 s[0].a", "2:2 s[0].a"]);
    }

    #[test]
    fn escapes_and_lone_surrogates_are_read() {
        let document = parse_json(br#""\u00e9\ud83d\ude00 \ud83d \ude00 \ud83d\u0041\n\/""#).unwrap();
        assert_eq!(document.root.as_str().unwrap(), "é😀 \u{fffd} \u{fffd} \u{fffd}A\n/");
    }

    proptest! {
        #[test]
        fn a_text_is_json_here_when_it_is_json_for_serde_json(text in "[\\[\\]{},:\"truefalsn0-9.eE+ \\\\-]{0,40}") {
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            match (parse_json(text.as_bytes()), theirs) {
                // A number too large for a double is a number all the same.
                (Ok(_), Err(error)) => prop_assert!(error.to_string().contains("number out of range"), "{}", error),
                (Ok(ours), Ok(theirs)) => prop_assert_eq!(to_json(&ours.root), theirs),
                (Err(ours), Ok(_)) => prop_assert!(false, "{}", ours),
                (Err(_), Err(_)) => {}
            }
        }

        #[test]
        fn any_bytes_are_a_tree_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            match parse_json(&bytes) {
                Ok(_) => prop_assert!(std::str::from_utf8(&bytes).is_ok(), "only text is JSON"),
                Err(error) => prop_assert!(!error.to_string().is_empty()),
            }
        }
    }
}
