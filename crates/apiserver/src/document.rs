//! `Document`: a text that never changes while the server runs, made once, packed once, and known by its hash.

use bytes::Bytes;
use evenkeel_api::Version;
use http::header::{ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::gzip;
use crate::response_data::ResponseData;

/// A text that never changes while the server runs.
#[derive(Debug)]
pub(crate) struct Document {
    line: Bytes,
    packed: Bytes,
    hash: String,
}

/// The element that belongs to a version, of four in the order of [`Version::ALL`].
pub(crate) fn of_version<T>(each: &[T; 4], version: Version) -> &T {
    let [v1, v1beta3, v1beta2, v1beta1] = each;
    match version {
        Version::V1 => v1,
        Version::V1beta3 => v1beta3,
        Version::V1beta2 => v1beta2,
        Version::V1beta1 => v1beta1,
    }
}

fn hash(text: &[u8]) -> String {
    Sha256::digest(text).iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02X}"))
}

// === impl Document ===

impl Document {
    /// A document from a JSON value.
    pub(crate) fn new(value: &Value) -> Self {
        let mut line = value.to_string();
        let hash = hash(line.as_bytes());
        line.push('\n');
        Self { packed: gzip::pack_once(line.as_bytes()), line: line.into(), hash }
    }

    /// A document from bytes in another format.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Self {
        Self { packed: gzip::pack_once(&bytes), hash: hash(&bytes), line: bytes.into() }
    }

    /// One line of JSON, with its newline.
    pub(crate) fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// The hash of the text.
    pub(crate) fn hash(&self) -> &str {
        &self.hash
    }

    /// The response to a request with those header fields: the text, packed if the client can unpack it, or nothing if
    /// the client has the text already.
    pub(crate) fn response(&self, request: &HeaderMap, content_type: HeaderValue) -> ResponseData {
        let etag = format!("\"{}\"", self.hash);
        let response = if is_known(request, &etag) {
            ResponseData::empty(StatusCode::NOT_MODIFIED)
        } else if gzip::is_accepted(request) {
            gzip::marked(ResponseData::new(StatusCode::OK, content_type, self.packed.clone()))
        } else {
            ResponseData::new(StatusCode::OK, content_type, self.line())
        };
        match HeaderValue::try_from(etag) {
            Ok(etag) => response.with(ETAG, etag),
            Err(_) => response,
        }
    }
}

fn is_known(request: &HeaderMap, etag: &str) -> bool {
    let known = request.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    known.flat_map(|value| value.split(',')).any(|tag| {
        let tag = tag.trim();
        tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_has_the_text_gets_nothing() {
        let document = Document::new(&json!({"a": 1}));
        let json = HeaderValue::from_static("application/json");
        let response = document.response(&HeaderMap::new(), json.clone());
        assert_eq!((response.status, response.body.as_ref()), (StatusCode::OK, &b"{\"a\":1}\n"[..]));
        let (_, etag) = response.headers.into_iter().find(|(name, _)| name == ETAG).unwrap();
        let known = HeaderMap::from_iter([(IF_NONE_MATCH, etag)]);
        let response = document.response(&known, json.clone());
        assert_eq!((response.status, response.body.len()), (StatusCode::NOT_MODIFIED, 0));
        let other = HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static("\"x\", W/\"y\""))]);
        assert_eq!(document.response(&other, json).status, StatusCode::OK);
    }
}
