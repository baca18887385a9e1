//! Reads JSON without building a tree: a cursor that borrows the wanted values and skips the rest.
//!
//! Logs have tens of fields a line of which a replay needs ten, so a tree would cost more than all the rest of the work.

mod skip;
mod text;

use std::borrow::Cow;

/// A position in a JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Why a text is not JSON, or has a value of another type than expected, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem} at byte {at}")]
pub(crate) struct JsonError {
    pub(crate) problem: &'static str,
    pub(crate) at: usize,
}

// === impl Scanner ===

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Reads an object. `member` is called with each name, and has to read or [skip](Self::skip) the value.
    pub(crate) fn object<E: From<JsonError>>(
        &mut self,
        mut member: impl FnMut(&str, &mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'{', "expected an object")?;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            let name = self.string()?;
            self.expect(b':', "expected a colon")?;
            member(&name, self)?;
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',', "expected a comma or the end of the object")?;
        }
    }

    /// Reads an array. `element` has to read or [skip](Self::skip) each element.
    pub(crate) fn array<E: From<JsonError>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'[', "expected an array")?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            element(self)?;
            if self.take(b']') {
                return Ok(());
            }
            self.expect(b',', "expected a comma or the end of the array")?;
        }
    }

    /// Reads a string, which is borrowed unless it has escapes.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, JsonError> {
        self.skip_whitespace();
        let (inner, has_escapes) = self.raw_string()?;
        let text = std::str::from_utf8(inner).map_err(|_| self.error("the string is not UTF-8"))?;
        if has_escapes {
            text::unescape(text).map(Cow::Owned).ok_or_else(|| self.error("the string has an invalid escape"))
        } else {
            Ok(Cow::Borrowed(text))
        }
    }

    /// Reads a string, or nothing where the value is `null`.
    pub(crate) fn string_or_null(&mut self) -> Result<Option<Cow<'a, str>>, JsonError> {
        if self.peek() == Some(b'n') { self.skip().map(|()| None) } else { self.string().map(Some) }
    }

    /// Reads a string, or a number or a word as it is written.
    pub(crate) fn scalar(&mut self) -> Result<Cow<'a, str>, JsonError> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[') => Err(self.error("expected a string or a number")),
            _ => {
                let bytes = self.raw_value()?;
                std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| self.error("the value is not UTF-8"))
            }
        }
    }

    /// Reads a number.
    pub(crate) fn number(&mut self) -> Result<f64, JsonError> {
        if !self.peek().is_some_and(|byte| byte == b'-' || byte.is_ascii_digit()) {
            return Err(self.error("expected a number"));
        }
        let digits = std::str::from_utf8(self.raw_value()?).unwrap_or_default();
        digits.parse().map_err(|_| self.error("expected a number"))
    }

    /// Reads over a value and returns its text.
    pub(crate) fn raw_value(&mut self) -> Result<&'a [u8], JsonError> {
        self.skip_whitespace();
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Requires that nothing follows.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        self.skip_whitespace();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.error("something follows the object")) }
    }

    /// The next byte that is not white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip_whitespace();
        self.bytes.get(self.at).copied()
    }

    fn error(&self, problem: &'static str) -> JsonError {
        if self.at >= self.bytes.len() {
            return JsonError { problem: "the text is cut off", at: self.bytes.len() };
        }
        JsonError { problem, at: self.at }
    }

    /// Reads over a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn expect(&mut self, byte: u8, problem: &'static str) -> Result<(), JsonError> {
        if self.take(byte) { Ok(()) } else { Err(self.error(problem)) }
    }

    #[inline]
    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// Reads over a string: its text between the quotes, and whether that has escapes.
    #[inline]
    fn raw_string(&mut self) -> Result<(&'a [u8], bool), JsonError> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.error("expected a string"));
        }
        let start = self.at + 1;
        let mut at = start;
        let mut has_escapes = false;
        loop {
            at = text::ordinary_until(self.bytes, at);
            match self.bytes.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok((&self.bytes[start..at], has_escapes));
                }
                Some(b'\\') => {
                    has_escapes = true;
                    at += 2;
                }
                Some(_) => {
                    self.at = at;
                    return Err(self.error("the string has a control character"));
                }
                None => {
                    self.at = self.bytes.len();
                    return Err(self.error("the string does not end"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Result<T> = std::result::Result<T, JsonError>;

    fn members(text: &str) -> Result<Vec<(String, String)>> {
        let mut found = Vec::new();
        let mut scanner = Scanner::new(text.as_bytes());
        scanner.object(|name, scanner| {
            let value = String::from_utf8_lossy(scanner.raw_value()?).into_owned();
            found.push((name.to_owned(), value));
            Ok::<_, JsonError>(())
        })?;
        scanner.end()?;
        Ok(found)
    }

    #[test]
    fn members_in_order_with_the_text_of_their_values() {
        let found = members(r#" {"a" : [1, {"b": "]}"}] , "\u0062":"\"", "c":-1.5e3,"d":null } "#).unwrap();
        let expected = [("a", r#"[1, {"b": "]}"}]"#), ("b", r#""\"""#), ("c", "-1.5e3"), ("d", "null")];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert_eq!(members("{}").unwrap(), []);
    }

    #[test]
    fn faults_have_a_place() {
        for (text, error) in [
            ("", "the text is cut off at byte 0"),
            ("[]", "expected an object at byte 0"),
            (r#"{"a""#, "the text is cut off at byte 4"),
            (r#"{"a" 1}"#, "expected a colon at byte 5"),
            (r#"{"a":1 "b":2}"#, "expected a comma or the end of the object at byte 7"),
            (r#"{"a":1,}"#, "expected a string at byte 7"),
            (r#"{"a":}"#, "expected a value at byte 5"),
            (r#"{"a":tru}"#, "expected a value at byte 5"),
            (r#"{"a":1}}"#, "something follows the object at byte 7"),
            (r#"{"a":"b"#, "the text is cut off at byte 7"),
            (r#"{"a":"b\"#, "the text is cut off at byte 8"),
            ("{\"a\":\"b\n\"}", "the string has a control character at byte 7"),
        ] {
            assert_eq!(members(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn typed_values() {
        let scanner = |text| Scanner::new(str::as_bytes(text));
        assert_eq!(scanner(" plain").string(), Err(JsonError { problem: "expected a string", at: 1 }));
        assert!(matches!(scanner(r#" "plain" "#).string(), Ok(Cow::Borrowed("plain"))));
        assert!(matches!(scanner(r#""plain""#).string(), Ok(Cow::Borrowed("plain"))));
        assert_eq!(scanner(r#""a\n\ud83d\ude00\/""#).string().unwrap(), "a\n😀/");
        assert_eq!(scanner(r#""\ud83d""#).string().unwrap(), "\u{fffd}");
        assert!(scanner(r#""\q""#).string().is_err());
        assert_eq!(scanner("null").string_or_null(), Ok(None));
        assert_eq!(scanner("12.5").number(), Ok(12.5));
        assert!(scanner(r#""12""#).number().is_err());
        assert_eq!(scanner("200").scalar().unwrap(), "200");
        assert_eq!(scanner(r#""200""#).scalar().unwrap(), "200");
        assert!(scanner("[200]").scalar().is_err());
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(members(&nested(60)).is_ok());
        let error = members(&nested(100_000)).unwrap_err();
        assert!(error.to_string().starts_with("the value is nested too deeply"), "{error}");
    }
}
