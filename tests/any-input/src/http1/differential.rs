//! The gateway's codec beside hyper's: whatever the gateway accepts, hyper reads in the same way.
//!
//! Where the gateway is stricter, it says why, and the reason is one of those that
//! `docs/decisions/0038-strict-http1.md` argues for.

use evenkeel_gateway::fuzzing::{Conversation, End, Message, requests};
use http::header::CONNECTION;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;

use super::hyper::requests_by_hyper;

/// As large as heads may be by default.
const HEAD_BYTES_MAX: usize = 64 * 1024;
const HEAD_FIELDS_MAX: usize = 100;

/// Why the gateway rejects what hyper accepts.
const STRICTER: &[&str] = &[
    "Host differs from the request target",
    "a line of the head ends with a bare line feed",
    "invalid Host",
    "invalid chunk size",
    "invalid request target",
    "invalid trailers, or too many",
    "the Content-Length is not a number",
    "the request has both Content-Length and Transfer-Encoding",
    "the request has more than one Content-Length",
    "the request has more than one Host",
    "the request has no Host",
    "unsupported Transfer-Encoding; only chunked is supported",
];

/// What two readers are compared by: what they read, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Reading {
    /// The messages, each in a normal form.
    pub messages: Vec<String>,
    /// `complete`, `incomplete` or `rejected`.
    pub end: String,
}

/// Reads the bytes with both.
///
/// # Panics
/// If the gateway accepts what hyper rejects or reads differently, or rejects what hyper accepts for another reason than
/// those that are known.
pub fn http1_differential(input: &[u8]) {
    let (ours, theirs) = (requests_by_gateway(input), requests_by_hyper(input));
    let (our_reading, their_reading) = (Reading::of(&ours), Reading::of(&theirs));
    // hyper does not look for `close` in a field with bytes beyond ASCII, and reads on.
    let is_beyond_ascii =
        |message: &Message| message.headers.get_all(CONNECTION).iter().any(|value| value.to_str().is_err());
    if our_reading == their_reading || ours.messages.iter().any(is_beyond_ascii) {
        return;
    }
    match ours.end {
        // hyper does not look at a head again before its end has arrived, nor the gateway at the size of a chunk.
        End::Rejected(_) if theirs.end == End::Incomplete && our_reading.messages == their_reading.messages => {}
        End::Incomplete if matches!(theirs.end, End::Rejected(_)) && our_reading.messages == their_reading.messages => {
        }
        End::Rejected(reason) if our_reading.is_beginning_of(&their_reading) => {
            assert!(STRICTER.contains(&reason), "{reason}: {their_reading:?}");
        }
        _ => assert_eq!(our_reading, their_reading),
    }
}

/// Reads requests with the gateway's codec and its default limits.
pub fn requests_by_gateway(input: &[u8]) -> Conversation {
    requests([input].into_iter(), HEAD_BYTES_MAX, HEAD_FIELDS_MAX)
}

// === impl Reading ===

impl Reading {
    /// The normal form of a conversation.
    pub fn of(conversation: &Conversation) -> Self {
        let end = match conversation.end {
            End::Complete => "complete",
            End::Incomplete => "incomplete",
            End::Rejected(_) => "rejected",
        };
        Self { messages: conversation.messages.iter().map(normal).collect(), end: end.to_owned() }
    }

    fn is_beginning_of(&self, other: &Self) -> bool {
        let all_but_last = self.messages.len().saturating_sub(1);
        other.messages.len() >= self.messages.len() && self.messages[..all_but_last] == other.messages[..all_but_last]
    }
}

/// A request on a few lines, whose fields are sorted. Long texts are cut.
fn normal(message: &Message) -> String {
    let mut text = cut(&message.first_line);
    put_fields(&mut text, &message.headers);
    text.push_str("\n\n");
    text.push_str(&cut(&latin1(&message.body)));
    put_fields(&mut text, &message.trailers);
    text
}

fn put_fields(text: &mut String, fields: &HeaderMap) {
    // The gateway takes a lone `keep-alive` out.
    let is_kept = |value: &HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"keep-alive");
    let mut lines: Vec<_> = fields
        .iter()
        .filter(|(name, value)| **name != CONNECTION || is_kept(value))
        .map(|(name, value)| format!("\n{}: {}", cut(name.as_str()), cut(&latin1(value.as_bytes()))))
        .collect();
    lines.sort();
    text.extend(lines);
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

fn cut(text: &str) -> String {
    match text.chars().count() {
        0..=200 => text.to_owned(),
        length => format!("{length} characters"),
    }
}
