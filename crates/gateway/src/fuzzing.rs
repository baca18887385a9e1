//! The readers of input from outside as plain functions of bytes, for `tests/any-input`. Not part of the API.

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method};

use crate::http1::{Decoded, Decoder, HeadLimits, HeadMemory, RequestHead, ResponseHead};
use crate::llm::{ASKS_FOR_USAGE, RequestFacts, Tokens, UsageFilter, place_to_ask};
use crate::net::proxy_protocol::Header;

/// The result of reading everything that arrived on a connection.
///
/// Not `#[non_exhaustive]`: it is for the fuzz targets of this repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    /// The messages whose heads were accepted.
    pub messages: Vec<Message>,
    /// How it ended.
    pub end: End,
}

/// A request or a response.
///
/// Not `#[non_exhaustive]`: it is for the fuzz targets of this repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// The first line, in its usual form; a response has no reason phrase.
    pub first_line: String,
    /// The header fields.
    pub headers: HeaderMap,
    /// The body, as far as it arrived.
    pub body: Vec<u8>,
    /// The trailer fields.
    pub trailers: HeaderMap,
    /// Whether the connection stays open after the message.
    pub is_kept_alive: bool,
}

/// How a conversation ended.
///
/// Not `#[non_exhaustive]`: it is for the fuzz targets of this repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The input ended after a whole message, or before the first.
    Complete,
    /// The input ended within a message.
    Incomplete,
    /// The reader rejected the input, for this reason.
    Rejected(&'static str),
}

/// Bytes that arrive piece by piece.
struct Arriving<'a, P> {
    pieces: P,
    input: BytesMut,
    memory: HeadMemory,
    conversation: &'a mut Conversation,
}

/// Reads the messages that an Envoy sends on a stream of external processing, each of at most so many bytes: what each says.
pub fn ext_proc<'a>(pieces: impl Iterator<Item = &'a [u8]>, bytes_max: usize) -> Vec<String> {
    crate::proxy::any_stream(pieces, bytes_max)
}

/// Reads requests.
pub fn requests<'a>(pieces: impl Iterator<Item = &'a [u8]>, bytes_max: usize, fields_max: usize) -> Conversation {
    let limits = HeadLimits { bytes: bytes_max, fields: fields_max };
    converse(pieces, |input, memory| {
        let head = RequestHead::take(input, memory, limits).map_err(|fault| fault.reason)?;
        Ok(head.map(|head| {
            let first_line = format!("{} {} {:?}", head.method, head.uri, head.version);
            (first_line, head.headers, head.body, head.is_kept_alive)
        }))
    })
}

/// Reads the responses to requests with this method. Interim responses count as messages.
pub fn responses<'a>(pieces: impl Iterator<Item = &'a [u8]>, method: &Method) -> Conversation {
    converse(pieces, |input, memory| {
        let head = ResponseHead::take(input, memory, method).map_err(|fault| fault.0)?;
        Ok(head.map(|head| (head.status.as_str().to_owned(), head.headers, head.body, head.is_kept_alive)))
    })
}

/// Reads a chunked body: one message without a head.
pub fn chunks<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Conversation {
    let mut is_begun = false;
    converse(pieces, |_, _| {
        let head = (String::new(), HeaderMap::new(), Decoder::CHUNKED, false);
        Ok((!std::mem::replace(&mut is_begun, true)).then_some(head))
    })
}

/// The client that a header of the PROXY protocol names, if it names one, and the length of the header. None if more bytes are
/// needed.
pub fn proxy_header(bytes: &[u8]) -> Result<Option<(Option<SocketAddr>, usize)>, String> {
    let header = Header::read(bytes).map_err(|fault| fault.to_string())?;
    Ok(header.map(|header| (header.client, header.length)))
}

/// The model that the body of a request names, and the tokens of prompt, cache and response that a response has which arrives in these
/// pieces.
pub fn tokens<'a>(content_type: &str, pieces: impl Iterator<Item = &'a [u8]> + Clone) -> (String, [f64; 3]) {
    let whole: Vec<u8> = pieces.clone().flatten().copied().collect();
    let facts = RequestFacts::read(&whole);
    let Tokens { prompt, cached, output } = Tokens::of_response(&facts, content_type, pieces);
    (facts.model.into(), [prompt, cached, output])
}

/// The bytes that a client gets of a stream that arrives in these pieces, if the gateway has asked for its usage.
pub fn without_usage<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut filter = UsageFilter::new();
    pieces.flat_map(|piece| filter.pass(Bytes::copy_from_slice(piece))).collect()
}

/// The body of a request for a chat that asks for the usage of its stream, if the gateway asks for it.
pub fn asking_for_usage(body: &[u8]) -> Option<Vec<u8>> {
    let at = place_to_ask("/v1/chat/completions", body)?;
    Some([&body[..at], ASKS_FOR_USAGE, &body[at..]].concat())
}

type Head = (String, HeaderMap, Decoder, bool);

fn converse<'a>(
    pieces: impl Iterator<Item = &'a [u8]>,
    mut head: impl FnMut(&mut BytesMut, &mut HeadMemory) -> Result<Option<Head>, &'static str>,
) -> Conversation {
    let mut conversation = Conversation { messages: Vec::new(), end: End::Complete };
    let (input, memory) = (BytesMut::new(), HeadMemory::default());
    let mut arriving = Arriving { pieces, input, memory, conversation: &mut conversation };
    let end = arriving.read(&mut head).unwrap_or_else(End::Rejected);
    conversation.end = end;
    conversation
}

// === impl Arriving ===

impl<'a, P: Iterator<Item = &'a [u8]>> Arriving<'_, P> {
    fn read(
        &mut self,
        head: &mut impl FnMut(&mut BytesMut, &mut HeadMemory) -> Result<Option<Head>, &'static str>,
    ) -> Result<End, &'static str> {
        loop {
            let Some((first_line, headers, body, is_kept_alive)) = head(&mut self.input, &mut self.memory)? else {
                if self.more() {
                    continue;
                }
                // Empty lines before a message are no part of it.
                let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
                return Ok(if self.input.iter().all(is_line_end) { End::Complete } else { End::Incomplete });
            };
            // As a connection does, so that the memory of the map is used again.
            self.memory.give_back(headers.clone());
            self.conversation.messages.push(Message { first_line, headers, is_kept_alive, ..Message::default() });
            if !self.read_body(body)? {
                return Ok(End::Incomplete);
            }
            if !is_kept_alive {
                return Ok(End::Complete);
            }
        }
    }

    /// Whether the whole body arrived.
    fn read_body(&mut self, mut body: Decoder) -> Result<bool, &'static str> {
        while !body.is_done() {
            let decoded = body.decode(&mut self.input).map_err(|fault| fault.0)?;
            let Some(decoded) = decoded else {
                if self.more() {
                    continue;
                }
                return Ok(body.close());
            };
            let Some(message) = self.conversation.messages.last_mut() else { break };
            match decoded {
                Decoded::Data(data) => message.body.extend_from_slice(&data),
                Decoded::Trailers(trailers) => message.trailers = trailers,
                Decoded::End => break,
            }
        }
        Ok(true)
    }

    fn more(&mut self) -> bool {
        let piece = self.pieces.next();
        self.input.extend_from_slice(piece.unwrap_or_default());
        piece.is_some()
    }
}
