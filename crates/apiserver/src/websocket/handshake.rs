//! The handshake: a GET that asks for a `WebSocket`, and the response that agrees.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use hyper::upgrade::OnUpgrade;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::failure::Failure;

/// A handshake that makes sense.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The connection, once the response has been sent.
    pub(crate) connection: OnUpgrade,
    accept: HeaderValue,
    protocol: Option<HeaderValue>,
}

/// The text that RFC 6455 adds to a key.
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The only version there is.
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// Whether a request asks for a `WebSocket`.
pub(super) fn is_websocket(headers: &HeaderMap) -> bool {
    let has = |name, token: &str| tokens(headers, name).any(|found| found.eq_ignore_ascii_case(token));
    has(UPGRADE, "websocket") && has(CONNECTION, "upgrade")
}

/// The protocols that a client offers.
pub(super) fn protocols(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    tokens(headers, SEC_WEBSOCKET_PROTOCOL)
}

/// The elements of a header field that is a list.
fn tokens(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|token| !token.is_empty())
}

// === impl Handshake ===

impl Handshake {
    /// The handshake of a request, if it asks for a `WebSocket` on a connection that can become one.
    pub(crate) fn of(parts: &Parts) -> Result<Option<Self>, Failure> {
        let Some(connection) = parts.extensions.get::<OnUpgrade>().filter(|_| is_websocket(&parts.headers)) else {
            return Ok(None);
        };
        if parts.headers.get(SEC_WEBSOCKET_VERSION) != Some(&VERSION) {
            return Err(Failure::bad_request("missing or bad WebSocket Version; only version 13 is supported"));
        }
        let key = parts.headers.get(SEC_WEBSOCKET_KEY).filter(|key| !key.is_empty());
        let key = key.ok_or_else(|| Failure::bad_request("the header Sec-WebSocket-Key is missing"))?;
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &[key.as_bytes(), KEY_SUFFIX.as_bytes()].concat());
        let accept = HeaderValue::from_str(&STANDARD.encode(hash))
            .map_err(|_| Failure::bad_request("the header Sec-WebSocket-Key is not valid"))?;
        // Watches have no protocol of their own. Clients that offer one want to have it agreed to.
        let protocol = protocols(&parts.headers).next().and_then(|name| HeaderValue::from_str(name).ok());
        Ok(Some(Self { connection: connection.clone(), accept, protocol }))
    }

    /// The header fields of the response that agrees.
    pub(crate) fn headers(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        let agreed = [
            (UPGRADE, HeaderValue::from_static("websocket")),
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (SEC_WEBSOCKET_ACCEPT, self.accept.clone()),
        ];
        agreed.into_iter().chain(self.protocol.clone().map(|protocol| (SEC_WEBSOCKET_PROTOCOL, protocol)))
    }
}
