//! `Decoder`: takes a body out of what has been read.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::chunks::{Chunks, take};

/// The framing of an incoming body, and its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decoder(BodyFraming);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyFraming {
    /// The body ends after this many more bytes.
    Length(u64),
    /// The body ends after the last chunk.
    Chunked(Chunks),
    /// The body ends when the connection closes.
    ToTheClose,
}

/// A part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

/// The bytes are not a valid body; the text says why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Malformed(pub(crate) &'static str);

// === impl Decoder ===

impl Decoder {
    pub(crate) const EMPTY: Self = Self(BodyFraming::Length(0));
    pub(crate) const CHUNKED: Self = Self(BodyFraming::Chunked(Chunks::Size));
    pub(crate) const TO_THE_CLOSE: Self = Self(BodyFraming::ToTheClose);

    pub(crate) fn length(length: u64) -> Self {
        Self(BodyFraming::Length(length))
    }

    /// The next part, or none if more has to be read first.
    pub(crate) fn decode(&mut self, input: &mut BytesMut) -> Result<Option<Decoded>, Malformed> {
        match &mut self.0 {
            BodyFraming::Length(0) => Ok(Some(Decoded::End)),
            BodyFraming::Chunked(chunks) => {
                let decoded = chunks.decode(input);
                chunks.end_now(input);
                decoded
            }
            _ if input.is_empty() => Ok(None),
            BodyFraming::Length(left) => {
                let (data, rest) = take(input, *left);
                *left = rest;
                Ok(Some(Decoded::Data(data)))
            }
            BodyFraming::ToTheClose => Ok(Some(Decoded::Data(input.split().freeze()))),
        }
    }

    /// The other end has closed the connection. Returns whether the body is complete with that.
    pub(crate) fn close(&mut self) -> bool {
        if self.0 == BodyFraming::ToTheClose {
            *self = Self::EMPTY;
        }
        self.is_done()
    }

    /// Whether the whole body has been taken.
    pub(crate) fn is_done(self) -> bool {
        matches!(self.0, BodyFraming::Length(0) | BodyFraming::Chunked(Chunks::Done))
    }

    /// How much is left, if that is known.
    pub(crate) fn left(self) -> Option<u64> {
        match self.0 {
            BodyFraming::Length(left) => Some(left),
            BodyFraming::Chunked(Chunks::Done) => Some(0),
            BodyFraming::Chunked(_) | BodyFraming::ToTheClose => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data, the names of the trailers, whether the body is complete, and what is left.
    type Taken = (Vec<u8>, Vec<String>, bool, Vec<u8>);

    /// Everything that comes out when the input arrives in pieces of this size.
    fn decode(mut decoder: Decoder, text: &[u8], piece: usize) -> Result<Taken, Malformed> {
        let (mut input, mut data, mut names) = (BytesMut::new(), Vec::new(), Vec::new());
        let mut pieces = text.chunks(piece);
        loop {
            match decoder.decode(&mut input)? {
                Some(Decoded::Data(part)) => data.extend_from_slice(&part),
                Some(Decoded::Trailers(trailers)) => names.extend(trailers.keys().map(ToString::to_string)),
                Some(Decoded::End) => break,
                None => match pieces.next() {
                    Some(piece) => input.extend_from_slice(piece),
                    None => break,
                },
            }
        }
        pieces.for_each(|piece| input.extend_from_slice(piece));
        Ok((data, names, decoder.is_done(), input.to_vec()))
    }

    #[test]
    fn chunks_are_read_however_they_arrive() {
        let text = b"5\r\nhello\r\n7;name=\"v\"\r\n, world\r\n0\r\nChecksum: 1\r\n\r\nGET";
        for piece in 1..text.len() {
            let (data, names, is_done, rest) = decode(Decoder::CHUNKED, text, piece).unwrap();
            assert_eq!((&*data, names, is_done), (&b"hello, world"[..], vec!["checksum".to_owned()], true), "{piece}");
            assert_eq!(rest, b"GET");
        }
    }

    #[test]
    fn a_body_ends_with_its_last_byte() {
        for (text, decoder) in [(&b"2\r\nab\r\n0\r\n\r\n"[..], Decoder::CHUNKED), (b"ab", Decoder::length(2))] {
            let (mut decoder, mut input) = (decoder, BytesMut::from(text));
            assert_eq!(decoder.decode(&mut input), Ok(Some(Decoded::Data("ab".into()))));
            assert!(decoder.is_done() && input.is_empty());
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_rejected() {
        for text in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+1\r\n",
            "0x1\r\nx",
            " 1\r\nx\r\n",
            "1\nx\n",
            "1\r\nxy\r\n",
            "1\r\nx\n0\r\n",
            "1\r\nx\n",
            "ffffffffffffffff\r\n",
            "10000000000000000\r\n",
            "1;a\rb\r\nx",
            "0\r\nbad name: 1\r\n\r\n",
            "0\r\n folded\r\n\r\n",
            "0\r\na: b\n\r\n",
            "0\r\na: b\r\n\n",
            "0\r\n\n",
            "1;a\0\r\nx\r\n",
        ] {
            assert!(decode(Decoder::CHUNKED, text.as_bytes(), 3).is_err(), "{text:?}");
        }
        assert!(decode(Decoder::CHUNKED, &[b'1'; 300], 7).is_err());
        let many = format!("0\r\n{}", "a: b\r\n".repeat(4000));
        assert!(decode(Decoder::CHUNKED, many.as_bytes(), 1000).is_err());
    }

    #[test]
    fn a_length_is_kept() {
        let (data, _, is_done, rest) = decode(Decoder::length(3), b"abcdef", 2).unwrap();
        assert_eq!((&*data, is_done, &*rest), (&b"abc"[..], true, &b"def"[..]));
        assert!(!Decoder::length(3).close());
        for (mut decoder, is_complete) in [(Decoder::CHUNKED, false), (Decoder::TO_THE_CLOSE, true)] {
            assert_eq!(decoder.close(), is_complete);
        }
    }
}
