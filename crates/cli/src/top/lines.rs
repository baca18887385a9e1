//! Lines out of chunks of a response, within a bound: a line that is too long is skipped.

/// Puts lines together that arrive in pieces.
#[derive(Debug)]
pub(super) struct Lines {
    line: Vec<u8>,
    bytes_max: usize,
    is_too_long: bool,
}

// === impl Lines ===

impl Lines {
    /// Lines of at most that many bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { line: Vec::new(), bytes_max, is_too_long: false }
    }

    /// Takes in a chunk, and calls `each` for each line that is complete, without its end.
    pub(super) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(&str)) {
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end]);
            self.end_line(&mut each);
            rest = &rest[end + 1..];
        }
        self.extend(rest);
    }

    fn extend(&mut self, part: &[u8]) {
        if self.line.len() + part.len() > self.bytes_max {
            self.is_too_long = true;
            self.line.clear();
        }
        if !self.is_too_long {
            self.line.extend_from_slice(part);
        }
    }

    fn end_line(&mut self, each: &mut impl FnMut(&str)) {
        if !self.is_too_long {
            each(String::from_utf8_lossy(self.line.strip_suffix(b"\r").unwrap_or(&self.line)).as_ref());
        }
        self.is_too_long = false;
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines, chunks: &[&str]) -> Vec<String> {
        let mut found = Vec::new();
        for chunk in chunks {
            lines.push(chunk.as_bytes(), |line| found.push(line.to_owned()));
        }
        found
    }

    #[test]
    fn chunks_may_be_cut_anywhere() {
        let text = "one\r\n\ntwo\nthree\nunfinished";
        for cut in 0..=text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(all(&mut Lines::new(10), &[head, tail]), ["one", "", "two", "three"], "{cut}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_takes_no_memory() {
        let mut lines = Lines::new(4);
        assert_eq!(all(&mut lines, &["12345", "67890", "\nabcd\n", "abcde\n", "x\n"]), ["abcd", "x"]);
        assert!(lines.line.capacity() <= 16);
    }
}
