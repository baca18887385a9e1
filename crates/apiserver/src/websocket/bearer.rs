//! Bearer tokens in `Sec-WebSocket-Protocol`, for clients in browsers, which cannot set `Authorization`.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL};

use super::handshake::{is_websocket, protocols};

/// The prefix of the token, which is encoded as base64url.
const PREFIX: &str = "base64url.bearer.authorization.k8s.io.";

/// Moves a token from the protocols to `Authorization`. As in Kubernetes, there has to be another protocol beside it, which
/// is the one that the server agrees to.
pub(crate) fn accept_bearer_protocol(headers: &mut HeaderMap) {
    if !is_websocket(headers) || headers.contains_key(AUTHORIZATION) {
        return;
    }
    let (tokens, others): (Vec<&str>, Vec<&str>) = protocols(headers).partition(|name| name.starts_with(PREFIX));
    let ([token], false) = (tokens.as_slice(), others.is_empty()) else { return };
    let Ok(token) = URL_SAFE_NO_PAD.decode(&token[PREFIX.len()..]) else { return };
    let authorization = [b"Bearer ", token.as_slice()].concat();
    let (authorization, others) = (HeaderValue::from_bytes(&authorization), HeaderValue::from_str(&others.join(", ")));
    if let (Ok(mut authorization), Ok(others)) = (authorization, others) {
        authorization.set_sensitive(true);
        headers.insert(AUTHORIZATION, authorization);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, others);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(protocols: &str) -> (Option<String>, String) {
        let mut headers = HeaderMap::new();
        headers.insert("connection", HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert("upgrade", HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_PROTOCOL, protocols.parse().unwrap());
        accept_bearer_protocol(&mut headers);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        (headers.get(AUTHORIZATION).map(text), text(&headers[SEC_WEBSOCKET_PROTOCOL]))
    }

    #[test]
    fn a_token_is_taken_from_the_protocols_if_there_is_another() {
        let token = format!("{PREFIX}c2VjcmV0"); // secret
        assert_eq!(after(&format!("{token}, events")), (Some("Bearer secret".to_owned()), "events".to_owned()));
        for unchanged in
            [token.clone(), "events".to_owned(), format!("{PREFIX}???, events"), format!("{token}, {token}, a")]
        {
            assert_eq!(after(&unchanged), (None, unchanged));
        }
    }
}
