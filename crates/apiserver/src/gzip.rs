//! Large responses are compressed for clients that can unpack them.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderValue};

use crate::response_data::ResponseData;

/// Below this, packing costs more than it saves.
const LENGTH_MIN: usize = 128 * 1024;

/// The response to a request with those header fields: packed, if it is large and the client can unpack it.
pub(crate) fn packed(response: ResponseData, request: &HeaderMap) -> ResponseData {
    let is_packed = response.headers.iter().any(|(name, _)| name == CONTENT_ENCODING);
    if is_packed || response.body.len() < LENGTH_MIN || !is_accepted(request) {
        return response;
    }
    // The client waits, so speed counts.
    let body = gzip(&response.body, Compression::fast());
    marked(ResponseData { body, ..response })
}

/// Packs a text that is sent many times.
pub(crate) fn pack_once(text: &[u8]) -> Bytes {
    gzip(text, Compression::best())
}

/// Says of a response that it is packed.
pub(crate) fn marked(response: ResponseData) -> ResponseData {
    response
        .with(CONTENT_ENCODING, HeaderValue::from_static("gzip"))
        .with(VARY, HeaderValue::from_static("Accept-Encoding"))
}

/// Whether the client can unpack.
pub(crate) fn is_accepted(request: &HeaderMap) -> bool {
    let encodings = request.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    encodings.flat_map(|value| value.split(',')).any(|encoding| {
        let (name, quality) = encoding.split_once(';').unwrap_or((encoding, ""));
        let quality = quality.trim().strip_prefix("q=").and_then(|quality| quality.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && quality.is_none_or(|quality| quality > 0.0)
    })
}

fn gzip(text: &[u8], level: Compression) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::with_capacity(text.len() / 8), level);
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("a Vec takes everything").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use http::StatusCode;
    use std::io::Read as _;

    fn request(accept_encoding: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(accept_encoding))])
    }

    #[test]
    fn clients_say_whether_they_can_unpack() {
        for yes in ["gzip", "deflate, GZIP;q=0.5", "br,gzip"] {
            assert!(is_accepted(&request(yes)), "{yes}");
        }
        for no in ["", "identity", "gzip;q=0", "gzip; q=0.0", "xgzip"] {
            assert!(!is_accepted(&request(no)), "{no}");
        }
    }

    #[test]
    fn only_large_answers_are_packed() {
        let text = |length: usize| ResponseData::text(StatusCode::OK, "x".repeat(length));
        assert!(packed(text(LENGTH_MIN - 1), &request("gzip")).headers.is_empty());
        assert!(packed(text(LENGTH_MIN), &HeaderMap::new()).headers.is_empty());
        let response = packed(text(LENGTH_MIN), &request("gzip"));
        assert_eq!(response.headers[0], (CONTENT_ENCODING, HeaderValue::from_static("gzip")));
        let mut unpacked = String::new();
        GzDecoder::new(&response.body[..]).read_to_string(&mut unpacked).unwrap();
        assert_eq!(unpacked, "x".repeat(LENGTH_MIN));
    }
}
