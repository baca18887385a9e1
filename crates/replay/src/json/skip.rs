//! Reads over JSON values whose content is not needed.

use super::{JsonError, Scanner};

/// Deeper nesting is refused, so that hostile lines cannot exhaust the stack.
const DEPTH_MAX: u32 = 64;

// === impl Scanner ===

impl Scanner<'_> {
    /// Reads over a value of any type.
    pub(crate) fn skip(&mut self) -> Result<(), JsonError> {
        self.skip_nested(0)
    }

    fn skip_nested(&mut self, depth: u32) -> Result<(), JsonError> {
        if depth > DEPTH_MAX {
            return Err(self.error("the value is nested too deeply"));
        }
        match self.peek() {
            Some(b'"') => self.raw_string().map(|_| ()),
            Some(b'{') => self.skip_members(depth),
            Some(b'[') => self.array(|scanner| scanner.skip_nested(depth + 1)),
            Some(b't') => self.skip_word(b"true"),
            Some(b'f') => self.skip_word(b"false"),
            Some(b'n') => self.skip_word(b"null"),
            Some(b'-' | b'0'..=b'9') => {
                self.skip_number();
                Ok(())
            }
            _ => Err(self.error("expected a value")),
        }
    }

    /// As [`object`](Self::object), but does not look at the names.
    fn skip_members(&mut self, depth: u32) -> Result<(), JsonError> {
        self.at += 1;
        if self.take(b'}') {
            return Ok(());
        }
        loop {
            self.skip_whitespace();
            self.raw_string()?;
            self.expect(b':', "expected a colon")?;
            self.skip_nested(depth + 1)?;
            if self.take(b'}') {
                return Ok(());
            }
            self.expect(b',', "expected a comma or the end of the object")?;
        }
    }

    fn skip_word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.error("expected a value"))
        }
    }

    fn skip_number(&mut self) {
        while let Some(b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }
}
