//! `Encoder`: puts a body on the wire.

use std::io::Write;

use bytes::Bytes;
use http::HeaderMap;

use super::wire::Wire;

/// Framing of an outgoing body, and its progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoder {
    /// The body ends after this many more bytes.
    Length(u64),
    /// The body ends after the last chunk.
    Chunked,
    /// The body ends when the connection closes.
    ToTheClose,
}

/// A body that has another length than was announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the body is longer or shorter than announced")]
pub(crate) struct Overrun;

// === impl Encoder ===

impl Encoder {
    /// Adds a piece of the body. Call it only if the wire is not full.
    pub(crate) fn push(&mut self, piece: Bytes, wire: &mut Wire) -> Result<(), Overrun> {
        if piece.is_empty() {
            return Ok(());
        }
        let end: &[u8] = match self {
            Self::Length(left) => {
                *left = left.checked_sub(piece.len() as u64).ok_or(Overrun)?;
                b""
            }
            Self::Chunked => {
                // Writing to memory does not fail.
                let _ = write!(wire.output(), "{:x}\r\n", piece.len());
                b"\r\n"
            }
            Self::ToTheClose => b"",
        };
        wire.push(piece, end);
        Ok(())
    }

    /// Ends the body. Call it only if the wire is not full.
    pub(crate) fn finish(self, trailers: Option<&HeaderMap>, wire: &mut Wire) -> Result<(), Overrun> {
        match self {
            Self::Length(0) | Self::ToTheClose => Ok(()),
            Self::Length(_) => Err(Overrun),
            Self::Chunked => {
                wire.output().extend_from_slice(b"0\r\n");
                for (name, value) in trailers.into_iter().flatten() {
                    put_field(wire.output(), name.as_str(), value.as_bytes());
                }
                wire.output().extend_from_slice(b"\r\n");
                Ok(())
            }
        }
    }
}

/// Writes one line of a head.
pub(crate) fn put_field(output: &mut Vec<u8>, name: &str, value: &[u8]) {
    output.extend_from_slice(name.as_bytes());
    output.extend_from_slice(b": ");
    output.extend_from_slice(value);
    output.extend_from_slice(b"\r\n");
}
