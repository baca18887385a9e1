//! Frames of RFC 6455, as a server reads and writes them. Of what clients send, only pings are kept.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opcode {
    Text = 1,
    Binary = 2,
    Close = 8,
    Pong = 10,
}

/// Reads the frames of a client from what arrives.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// The bytes that have arrived and have not been read.
    pub(super) arrived: BytesMut,
    /// This many bytes of a message are still to be skipped.
    skipped: u64,
}

/// A frame of the client that needs a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The response has the same bytes.
    Ping(Bytes),
    /// The client wants to end.
    Close,
    /// The client violates the protocol.
    Violation,
}

/// The longest payload of a control frame.
const CONTROL_BYTES_MAX: usize = 125;
const MASK_BYTES: usize = 4;
const PING: u8 = 9;

/// The head of an unmasked frame that is a whole message.
pub(super) fn head(opcode: Opcode, length: usize) -> BytesMut {
    let mut head = BytesMut::with_capacity(10);
    head.put_u8(0x80 | opcode as u8);
    match length {
        0..=CONTROL_BYTES_MAX => head.put_u8(u8::try_from(length).unwrap_or(0)),
        126..=0xffff => {
            head.put_u8(126);
            head.put_u16(u16::try_from(length).unwrap_or(0));
        }
        _ => {
            head.put_u8(127);
            head.put_u64(length as u64);
        }
    }
    head
}

// === impl Incoming ===

impl Incoming {
    /// The next frame that needs a response, if it has arrived. Messages are skipped: a watch takes no input.
    pub(super) fn next(&mut self) -> Option<Received> {
        loop {
            let here = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(self.arrived.len());
            self.arrived.advance(here);
            self.skipped -= here as u64;
            let &[first, second, ref rest @ ..] = &*self.arrived else { return None };
            let (opcode, is_masked, short) = (first & 0x0f, second & 0x80 != 0, usize::from(second & 0x7f));
            let is_control = opcode & 0x08 != 0;
            // Rejected: reserved bits, unknown opcodes, unmasked frames, and control frames that are long or fragmented.
            let is_wrong = first & 0x70 != 0
                || !matches!(opcode, 0..=2 | 8..=10)
                || !is_masked
                || is_control && (first & 0x80 == 0 || short > CONTROL_BYTES_MAX);
            if is_wrong {
                return Some(Received::Violation);
            }
            let (length, length_bytes) = match short {
                126 => (u64::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
                127 => (u64::from_be_bytes(*rest.first_chunk()?), 8),
                length => (length as u64, 0),
            };
            let head_bytes = 2 + length_bytes + MASK_BYTES;
            if !is_control {
                if length > i64::MAX as u64 {
                    return Some(Received::Violation);
                }
                if self.arrived.len() < head_bytes {
                    return None;
                }
                self.arrived.advance(head_bytes);
                self.skipped = length;
                continue;
            }
            if self.arrived.len() < head_bytes + short {
                return None;
            }
            let frame = self.arrived.split_to(head_bytes + short);
            let (mask, payload) = frame[2..].split_at(MASK_BYTES);
            match opcode {
                PING => {
                    let payload = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
                    return Some(Received::Ping(payload.collect()));
                }
                8 => return Some(Received::Close),
                // We send no pings, so a pong means nothing.
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A masked frame.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let mut frame = head(Opcode::Text, payload.len());
        frame[0] = first;
        frame[1] |= 0x80;
        frame.extend_from_slice(&mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame.to_vec()
    }

    #[test]
    fn messages_are_skipped_and_pings_are_found_however_they_arrive() {
        let bytes = [
            frame(0x81, b"text"),
            frame(0x02, &[0; 300]),
            frame(0x80, &vec![0; 70_000]),
            frame(0x8a, b"pong"),
            frame(0x89, b"ping"),
            frame(0x88, b""),
        ]
        .concat();
        for step in [1, 2, 7, 1000, bytes.len()] {
            let (mut incoming, mut found) = (Incoming::default(), Vec::new());
            for part in bytes.chunks(step) {
                incoming.arrived.extend_from_slice(part);
                found.extend(std::iter::from_fn(|| incoming.next()));
            }
            assert_eq!(found, [Received::Ping(Bytes::from_static(b"ping")), Received::Close], "{step}");
            assert!(incoming.arrived.is_empty());
        }
    }

    #[test]
    fn what_breaks_the_rules_is_noticed() {
        let huge = [&[0x82, 0xff][..], &[0xff; 8]].concat();
        for bytes in [
            b"\x81\x00".to_vec(),   // not masked
            frame(0xc1, b"x"),      // a reserved bit
            frame(0x83, b"x"),      // an unknown kind
            frame(0x09, b"x"),      // a ping in parts
            frame(0x89, &[0; 126]), // a long ping
            huge,
        ] {
            let mut incoming = Incoming::default();
            incoming.arrived.extend_from_slice(&bytes);
            assert_eq!(incoming.next(), Some(Received::Violation), "{bytes:?}");
        }
    }

    #[test]
    fn lengths_are_written_in_the_shortest_form() {
        for (length, bytes) in
            [(5, &[0x81, 5][..]), (126, &[0x81, 126, 0, 126]), (65_536, &[0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0])]
        {
            assert_eq!(head(Opcode::Text, length), bytes);
        }
    }
}
