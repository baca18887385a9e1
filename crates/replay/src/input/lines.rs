//! Splits a log into lines, in bounded memory.

use std::io::{BufRead, BufReader, Read};

use super::{PART_MAX, Part};
use crate::formats::Damage;

/// The lines of a log.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    number: u64,
    is_over: bool,
}

const BUFFER: usize = 1 << 18;

/// Buffers that have grown beyond this are not kept.
const LINE_KEPT: usize = 1 << 20;

// === impl Lines ===

impl<R: Read> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(BUFFER, reader), line: Vec::new(), number: 0, is_over: false }
    }

    /// The next line that is not empty.
    pub(super) fn next_line(&mut self) -> Option<Part<'_>> {
        loop {
            if self.is_over {
                return None;
            }
            if self.line.capacity() > LINE_KEPT {
                self.line = Vec::new();
            }
            self.line.clear();
            let read = self.reader.by_ref().take(PART_MAX as u64).read_until(b'\n', &mut self.line);
            self.number += 1;
            let number = self.number;
            match read {
                Ok(0) => self.is_over = true,
                Ok(PART_MAX) if !self.line.ends_with(b"\n") => {
                    self.is_over = self.reader.skip_until(b'\n').is_err();
                    return Some(Part { number, text: Err(Damage::TooLong(PART_MAX)) });
                }
                Ok(_) if self.line.trim_ascii().is_empty() => {}
                Ok(_) => return Some(Part { number, text: Ok(self.line.trim_ascii()) }),
                Err(error) => {
                    self.is_over = true;
                    return Some(Part { number, text: Err(Damage::Unreadable(error.to_string())) });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn lines(reader: impl Read) -> Vec<(u64, Result<String, Damage>)> {
        let mut lines = Lines::new(reader);
        let mut all = Vec::new();
        while let Some(Part { number, text }) = lines.next_line() {
            all.push((number, text.map(|text| String::from_utf8_lossy(text).into_owned())));
        }
        all
    }

    #[test]
    fn empty_lines_are_counted_and_left_out() {
        let found = lines(&b"a\n\n \r\nb\r\nlast"[..]);
        assert_eq!(found, [(1, Ok("a".to_owned())), (4, Ok("b".to_owned())), (5, Ok("last".to_owned()))]);
        assert!(lines(&b""[..]).is_empty());
    }

    #[test]
    fn long_lines_are_damaged_and_the_next_is_read() {
        let long = io::repeat(b'x').take(PART_MAX as u64 + 5).chain(&b"\nb\n"[..]);
        assert_eq!(lines(long), [(1, Err(Damage::TooLong(PART_MAX))), (2, Ok("b".to_owned()))]);
    }

    #[test]
    fn what_cannot_be_read_ends_the_log() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("no disk"))
            }
        }
        let found = lines(b"a\n".chain(Broken));
        assert_eq!(found, [(1, Ok("a".to_owned())), (2, Err(Damage::Unreadable("no disk".to_owned())))]);
    }
}
