//! `WebSocket`s in streams of HTTP/2 (RFC 8441), in front of upstreams that know them from HTTP/1.1 (RFC 6455).

use std::rc::Rc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper::ext::Protocol;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::buffered_body::BufferedBody;
use super::upgrade;
use crate::http1::{HeadFlags, Wire, has_token};
use crate::proxy::error_response::{Failure, Form};
use crate::proxy::exchange::Exchange;
use crate::proxy::forward::sanitize_response;
use crate::proxy::response_body::ResponseBody;
use crate::proxy::worker::Worker;

/// A `WebSocket` that a client has asked for in a stream of HTTP/2.
#[derive(Debug)]
pub(super) struct WebSocket {
    stream: OnUpgrade,
    /// The value by which an upstream shows that it has understood the handshake.
    accept: String,
}

/// The text that RFC 6455 appends to a key.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

// === impl WebSocket ===

impl WebSocket {
    /// Makes a handshake of HTTP/1.1 of a CONNECT, if it asks for a `WebSocket`.
    pub(super) fn begin(parts: &mut Parts) -> Result<Self, Failure> {
        let protocol = parts.extensions.remove::<Protocol>().ok_or(Failure::Connection)?;
        if !protocol.as_str().eq_ignore_ascii_case("websocket") {
            return Err(Failure::UnknownProtocol);
        }
        let stream = parts.extensions.remove::<OnUpgrade>().ok_or(Failure::Connection)?;
        let (key, accept) = key().ok_or(Failure::UnknownProtocol)?;
        parts.method = Method::GET;
        parts.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        parts.headers.insert(SEC_WEBSOCKET_KEY, key);
        Ok(Self { stream, accept })
    }

    /// The response for the client. If the upstream has agreed, the two speak from now on, for as long as `running` is kept.
    pub(super) fn response(
        self,
        mut response: Response<BufferedBody>,
        exchange: &Exchange,
        worker: &Rc<Worker>,
        running: impl Sized + 'static,
    ) -> Response<BufferedBody> {
        let refuse = |failure: Failure| failure.response_in(Form::UNKNOWN, &worker.errors).map(BufferedBody::own);
        if response.status().is_success() {
            // A success would tell the client that the two have agreed.
            return refuse(Failure::NotUpgraded);
        }
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return response;
        }
        let Some(upstream) = response.body_mut().take_upgraded().filter(|_| self.is_agreed(response.headers())) else {
            return refuse(Failure::MalformedResponse);
        };
        *response.status_mut() = StatusCode::OK;
        sanitize_response(StatusCode::OK, response.headers_mut(), HeadFlags::ANY);
        for name in [SEC_WEBSOCKET_ACCEPT, CONTENT_LENGTH] {
            response.headers_mut().remove(name);
        }
        let running = (running, response.body_mut().take_long_running());
        let stall = exchange.timeouts.stall;
        tokio::task::spawn_local(run(self.stream, upstream, Rc::clone(worker), stall, running));
        response.map(|_| BufferedBody::own(ResponseBody::default()))
    }

    fn is_agreed(&self, headers: &HeaderMap) -> bool {
        has_token(headers, &UPGRADE, "websocket")
            && headers.get(SEC_WEBSOCKET_ACCEPT).is_some_and(|accept| accept.as_bytes() == self.accept.as_bytes())
    }
}

async fn run(stream: OnUpgrade, upstream: Box<Wire>, worker: Rc<Worker>, stall: Duration, running: impl Sized) {
    // The client may have gone meanwhile.
    if let Ok(stream) = stream.await {
        upgrade::between(Bytes::new(), TokioIo::new(stream), *upstream, &worker, stall).await;
    }
    drop(running);
}

/// A key for a handshake, and the value that accepts it.
fn key() -> Option<(HeaderValue, String)> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    let key = STANDARD.encode(bytes);
    let accept = accept(&key);
    Some((HeaderValue::from_maybe_shared(Bytes::from(key)).ok()?, accept))
}

fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{KEY_SUFFIX}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_answered_as_in_rfc_6455() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
