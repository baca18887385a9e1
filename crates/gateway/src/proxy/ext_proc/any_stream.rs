//! Reads the messages of an Envoy as a plain function of bytes, for `tests/any-input`.

use std::net::{Ipv4Addr, SocketAddr};

use super::grpc::{MessageFrames, Status};
use super::head::{client_of, head_of, list_bytes, version_of};
use super::messages::{ProcessingRequest, Step};
use crate::proxy::serve::normalize_head;

/// Reads a stream, and tells what each message says: a head with its client, something else, or why the stream ends.
pub(crate) fn any_stream<'a>(pieces: impl Iterator<Item = &'a [u8]>, bytes_max: usize) -> Vec<String> {
    let (mut frames, mut told) = (MessageFrames::new(bytes_max), Vec::new());
    for piece in pieces {
        frames.push(piece);
        while let Some(message) = frames.next::<ProcessingRequest>() {
            match message.and_then(describe) {
                Ok(text) => told.push(text),
                Err(status) => {
                    told.push(format!("{status:?}"));
                    return told;
                }
            }
        }
    }
    told
}

fn describe(message: ProcessingRequest) -> Result<String, Status> {
    let envoy = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let (client, version) = (client_of(&message.attributes, envoy), version_of(&message.attributes));
    let Some(Step::RequestHeaders(headers)) = message.step else { return Ok("another step".to_owned()) };
    let bytes = list_bytes(&headers);
    let mut parts = head_of(headers)?;
    let normalized = normalize_head(&mut parts, 100).is_ok();
    let mut names: Vec<&str> = parts.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    Ok(format!("{bytes} {version:?} {client:?} {normalized} {} {} {names:?}", parts.method, parts.uri))
}
