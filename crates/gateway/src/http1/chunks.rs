//! Chunked bodies, read strictly: nothing that two readers could understand differently is accepted.

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;

use super::decoder::{Decoded, Malformed};
use super::fields::{Cutter, has_whole_line_ends};
use super::head_memory::HeadMemory;

/// How far a chunked body has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chunks {
    /// The line with the size of a chunk comes next.
    Size,
    /// Inside of a chunk, with so many bytes left.
    Data(u64),
    /// At the end of the line after a chunk.
    DataEnd,
    /// The last chunk has been read; trailers come next.
    Trailers,
    /// At the end.
    Done,
}

/// The longest line with a size, extensions included.
const SIZE_LINE_MAX: usize = 256;
/// The bytes of all trailers.
const TRAILERS_MAX: usize = 16 * 1024;
const TRAILER_COUNT_MAX: usize = 64;

// === impl Chunks ===

impl Chunks {
    /// The next part, or none if more has to be read first.
    pub(super) fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Decoded>, Malformed> {
        loop {
            match *self {
                Self::Size => {
                    let Some((size, length)) = size_line(input)? else { return Ok(None) };
                    input.advance(length);
                    *self = if size == 0 { Self::Trailers } else { Self::Data(size) };
                }
                Self::Data(left) => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let (data, rest) = take(input, left);
                    *self = if rest == 0 { Self::DataEnd } else { Self::Data(rest) };
                    return Ok(Some(Decoded::Data(data)));
                }
                Self::DataEnd => {
                    let line_end = &input[..input.len().min(2)];
                    if !b"\r\n".starts_with(line_end) {
                        return Err(Malformed("a chunk is longer than its size says"));
                    }
                    if line_end.len() < 2 {
                        return Ok(None);
                    }
                    input.advance(2);
                    *self = Self::Size;
                }
                Self::Trailers => {
                    let Some((trailers, length)) = trailers(input)? else { return Ok(None) };
                    input.advance(length);
                    *self = Self::Done;
                    if !trailers.is_empty() {
                        return Ok(Some(Decoded::Trailers(trailers)));
                    }
                }
                Self::Done => return Ok(Some(Decoded::End)),
            }
        }
    }

    /// Takes the end of the body, if the rest that has been read is that and no further data.
    pub(super) fn end_now(&mut self, input: &mut BytesMut) {
        if *self == Self::DataEnd && input.starts_with(b"\r\n0\r\n\r\n") {
            input.advance(7);
            *self = Self::Done;
        }
    }
}

/// Takes so much at most, and says how much of it is left.
pub(super) fn take(input: &mut BytesMut, at_most: u64) -> (Bytes, u64) {
    let length = usize::try_from(at_most).unwrap_or(usize::MAX).min(input.len());
    let data = input.split_to(length).freeze();
    (data, at_most - length as u64)
}

/// The size of a chunk and the length of its line.
fn size_line(input: &[u8]) -> Result<Option<(u64, usize)>, Malformed> {
    const FAULT: Malformed = Malformed("invalid chunk size");
    let window = &input[..input.len().min(SIZE_LINE_MAX)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        return if input.len() < SIZE_LINE_MAX { Ok(None) } else { Err(FAULT) };
    };
    let line = input[..end].strip_suffix(b"\r").ok_or(FAULT)?;
    let digits = line.split(|byte| *byte == b';').next().unwrap_or_default();
    // Some senders pad the size with spaces; all readers understand that in the same way.
    let digits = digits.trim_ascii_end();
    if digits.is_empty() || digits.len() > 15 || line.iter().any(|byte| *byte < b' ' && *byte != b'\t') {
        return Err(FAULT);
    }
    let size =
        digits.iter().try_fold(0_u64, |size, digit| Some(size * 16 + u64::from(char::from(*digit).to_digit(16)?)));
    Ok(Some((size.ok_or(FAULT)?, end + 1)))
}

/// The trailers and their length, with the empty line that ends them.
fn trailers(input: &[u8]) -> Result<Option<(HeaderMap, usize)>, Malformed> {
    const FAULT: Malformed = Malformed("invalid trailers, or too many");
    let mut fields = [httparse::EMPTY_HEADER; TRAILER_COUNT_MAX];
    match httparse::parse_headers(input, &mut fields) {
        Ok(httparse::Status::Complete((length, fields))) if length <= TRAILERS_MAX => {
            if !has_whole_line_ends(&input[..length], fields) {
                return Err(FAULT);
            }
            let memory = &mut HeadMemory::default();
            let (headers, _) = Cutter::new(&input[..length], memory).headers(fields, memory).ok_or(FAULT)?;
            Ok(Some((headers, length)))
        }
        Ok(httparse::Status::Partial) if input.len() < TRAILERS_MAX => Ok(None),
        Ok(_) | Err(_) => Err(FAULT),
    }
}
