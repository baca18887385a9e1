//! `GrpcMessages`: how far a body has come in its gRPC messages.
//!
//! A message is a flag of one byte, its length in four bytes, and as many bytes as that says. One follows the other.

/// The messages of a body, of which some part has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrpcMessages {
    position: MessagePosition,
    has_whole: bool,
}

/// The position of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MessagePosition {
    /// Into the flag and the length, of which so many bytes have been seen.
    Prefix { seen: u8, length: u32 },
    /// Into a message, of which so many bytes are missing.
    Message { missing: u32 },
}

const PREFIX_BYTES: u8 = 5;

// === impl GrpcMessages ===

impl GrpcMessages {
    pub(crate) fn new() -> Self {
        Self { position: MessagePosition::BETWEEN, has_whole: false }
    }

    /// Notes the next bytes of the body. Returns whether they end a message, perhaps several.
    pub(crate) fn advance(&mut self, mut data: &[u8]) -> bool {
        let mut is_end = false;
        while let [first, rest @ ..] = data {
            (self.position, data) = match self.position {
                MessagePosition::Prefix { seen, length } => {
                    // The flag is shifted out again.
                    let (seen, length) = (seen + 1, length << 8 | u32::from(*first));
                    let is_whole = seen == PREFIX_BYTES;
                    (
                        if is_whole {
                            MessagePosition::Message { missing: length }
                        } else {
                            MessagePosition::Prefix { seen, length }
                        },
                        rest,
                    )
                }
                MessagePosition::Message { missing } => {
                    let (taken, rest) = data.split_at(data.len().min(missing as usize));
                    (
                        MessagePosition::Message { missing: missing - u32::try_from(taken.len()).unwrap_or(missing) },
                        rest,
                    )
                }
            };
            if self.position == (MessagePosition::Message { missing: 0 }) {
                self.position = MessagePosition::BETWEEN;
                (self.has_whole, is_end) = (true, true);
            }
        }
        is_end
    }

    /// Whether one of them has come whole.
    pub(crate) fn has_whole(self) -> bool {
        self.has_whole
    }

    /// Whether one of them has come in part.
    pub(crate) fn has_part(self) -> bool {
        self.position != MessagePosition::BETWEEN
    }
}

// === impl MessagePosition ===

impl MessagePosition {
    const BETWEEN: Self = Self::Prefix { seen: 0, length: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &[u8]) -> Vec<u8> {
        let length = u32::try_from(text.len()).unwrap().to_be_bytes();
        [&[1], &length[..], text].concat()
    }

    #[test]
    fn messages_end_where_their_lengths_say_however_they_arrive() {
        let body = [message(b"hello"), message(b""), message(&[7; 300])].concat();
        let ends = [10, 15, 320];
        for piece in 1..=body.len() {
            let mut messages = GrpcMessages::new();
            let mut seen = 0;
            for part in body.chunks(piece) {
                let before = seen;
                seen += part.len();
                let has_end = ends.iter().any(|end| (before + 1..=seen).contains(end));
                assert_eq!(messages.advance(part), has_end, "{piece}: {seen}");
                assert_eq!(messages.has_whole(), seen >= ends[0], "{piece}: {seen}");
                assert_eq!(messages.has_part(), !ends.contains(&seen), "{piece}: {seen}");
            }
        }
    }

    #[test]
    fn what_is_no_message_is_one_that_does_not_end() {
        let mut messages = GrpcMessages::new();
        assert!(!messages.has_part() && !messages.has_whole());
        assert!(!messages.advance(b"{\"user\": \"ann\"}"));
        assert!(messages.has_part() && !messages.has_whole());
        assert!(!messages.advance(&vec![0; 1 << 20]));
        assert!(!messages.advance(&[]));
        assert!(messages.has_part());
    }
}
