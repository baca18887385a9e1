//! The HTTP/1.1 codec of the gateway: any bytes are read or rejected, in the same way however they arrive, and what is
//! accepted can be understood in one way only.

mod differential;
mod hyper;

use evenkeel_gateway::fuzzing::{Conversation, End, Message, chunks, requests, responses};
use http::header::{CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method};

pub use differential::{Reading, http1_differential, requests_by_gateway};
pub use hyper::requests_by_hyper;

/// Small, so that inputs reach them.
const HEAD_BYTES_MAX: usize = 2048;
const HEAD_FIELDS_MAX: usize = 24;

/// Reads the bytes as everything that a client sends on a connection.
///
/// # Panics
/// If the result depends on how the bytes arrive, if an accepted head has two meanings, or if it reads differently when it
/// is written again.
pub fn http1_request(input: &[u8]) {
    let read = |pieces: &mut dyn Iterator<Item = &[u8]>| requests(pieces, HEAD_BYTES_MAX, HEAD_FIELDS_MAX);
    let whole = assert_same_in_pieces(input, read);
    for message in &whole.messages {
        assert_has_one_meaning(message);
        let written = written(&message.first_line, &message.headers, message.is_kept_alive);
        let again = requests([&*written].into_iter(), 2 * HEAD_BYTES_MAX, HEAD_FIELDS_MAX + 1);
        assert_same_head(&again, message);
    }
}

/// Reads the bytes as everything that an upstream sends on a connection. An odd first byte makes the requests `HEAD`.
///
/// # Panics
/// If the result depends on how the bytes arrive, or if a head reads differently when it is written again.
pub fn http1_response(input: &[u8]) {
    let (method, input) = match input.split_first() {
        Some((first, rest)) if first % 2 == 1 => (Method::HEAD, rest),
        Some((_, rest)) => (Method::GET, rest),
        None => return,
    };
    let whole = assert_same_in_pieces(input, |pieces| responses(pieces, &method));
    for message in &whole.messages {
        let first_line = format!("HTTP/1.1 {}", message.first_line);
        let written = written(&first_line, &message.headers, message.is_kept_alive);
        assert_same_head(&responses([&*written].into_iter(), &method), message);
    }
}

/// Reads the bytes as a chunked body.
///
/// # Panics
/// If the result depends on how the bytes arrive, or if the body reads differently when it is written again.
pub fn http1_chunks(input: &[u8]) {
    let whole = assert_same_in_pieces(input, |pieces| chunks(pieces));
    let [message] = &*whole.messages else { panic!("one message: {whole:?}") };
    assert!(message.body.len() <= input.len());
    if whole.end != End::Complete {
        return;
    }
    let mut written = Vec::new();
    for chunk in message.body.chunks(7) {
        written.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        written.extend_from_slice(chunk);
        written.extend_from_slice(b"\r\n");
    }
    written.extend_from_slice(b"0\r\n");
    put_fields(&mut written, &message.trailers);
    assert_eq!(chunks([&*written].into_iter()), whole);
}

/// What is read, once it is shown that it does not matter in which pieces the bytes arrive.
fn assert_same_in_pieces(input: &[u8], read: impl Fn(&mut dyn Iterator<Item = &[u8]>) -> Conversation) -> Conversation {
    let whole = read(&mut [input].into_iter());
    // Every size would take too long for long inputs.
    let sizes = if input.len() < 600 { &[1, 2, 3, 7, 64][..] } else { &[509] };
    for size in sizes {
        let pieces = read(&mut input.chunks(*size));
        assert_eq!(pieces.messages, whole.messages, "in pieces of {size}");
        match (pieces.end, whole.end) {
            // Which of two faults is found first may depend on what has arrived.
            (End::Rejected(_), End::Rejected(_)) => {}
            (one, other) => assert_eq!(one, other, "in pieces of {size}"),
        }
    }
    whole
}

fn assert_has_one_meaning(message: &Message) {
    let count = |name| message.headers.get_all(name).iter().count();
    let (lengths, codings) = (count(CONTENT_LENGTH), count(TRANSFER_ENCODING));
    assert!(lengths + codings <= 1, "one length: {message:?}");
    let is_http10 = message.first_line.ends_with("HTTP/1.0");
    assert!(count(HOST) == 1 || is_http10 && count(HOST) == 0, "one host: {message:?}");
    assert!(codings == 0 || !is_http10, "no chunks in HTTP/1.0: {message:?}");
    let is_sound = |value: &HeaderValue| !value.as_bytes().iter().any(|byte| matches!(byte, b'\r' | b'\n' | b'\0'));
    assert!(message.headers.values().all(is_sound), "no line ends in values: {message:?}");
    let is_printable = |byte: u8| byte > b' ' && byte != 0x7f;
    let [method, target, version] = *message.first_line.split(' ').collect::<Vec<_>>() else {
        panic!("three words: {message:?}")
    };
    assert!([method, target, version].into_iter().flat_map(str::bytes).all(is_printable), "{message:?}");
}

/// A head in its plainest form. The codec takes a lone `Connection: keep-alive` out; HTTP/1.0 needs it.
fn written(first_line: &str, headers: &HeaderMap, is_kept_alive: bool) -> Vec<u8> {
    let mut head = format!("{first_line}\r\n").into_bytes();
    if is_kept_alive && first_line.ends_with("HTTP/1.0") {
        head.extend_from_slice(b"connection: keep-alive\r\n");
    }
    put_fields(&mut head, headers);
    head
}

fn put_fields(head: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
}

fn assert_same_head(again: &Conversation, message: &Message) {
    let [first, ..] = &*again.messages else { panic!("{again:?} is not {message:?}") };
    assert_eq!((&first.first_line, &first.headers), (&message.first_line, &message.headers));
    // A response is written as one of HTTP/1.1, which is kept alive where one of HTTP/1.0 is not.
    assert!(first.is_kept_alive || !message.is_kept_alive, "{again:?} is not {message:?}");
}
