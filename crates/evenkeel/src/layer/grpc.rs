//! gRPC, as far as flow control has to know it: which requests are calls, and error responses that its clients
//! understand. The gateway uses it too; it is not part of the API.

use std::fmt::Write;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Response, StatusCode};

const MEDIA_TYPE: &str = "application/grpc";
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// When a client should try again, in milliseconds.
pub const RETRY_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Whether a request is a call, and its response has to be one of gRPC: the media type is `application/grpc`, perhaps with
/// a format (`+proto`) and parameters (RFC 9110, 8.3.1). `application/grpc-web` is another protocol.
pub fn is_grpc(request: &HeaderMap) -> bool {
    let Some(value) = request.get(CONTENT_TYPE) else { return false };
    let Some((media_type, rest)) = value.as_bytes().split_at_checked(MEDIA_TYPE.len()) else { return false };
    let is_end = matches!(rest, [b'+', ..]) || matches!(rest.trim_ascii_start(), [] | [b';', ..]);
    is_end && media_type.eq_ignore_ascii_case(MEDIA_TYPE.as_bytes())
}

/// A response that consists of trailers only, which are sent as headers then.
pub fn error_response(status: StatusCode, message: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
    headers.insert(GRPC_STATUS, code(status).into());
    headers.insert(GRPC_MESSAGE, percent_encoded(message));
    response
}

/// The code for what an HTTP status says. The mapping of the gRPC specification is for clients that get a response of
/// something else than a server of gRPC, and does not tell a bad request from a bug; where the meaning of a status is
/// known, its code is the one that has this meaning (`google.rpc.Code`).
fn code(status: StatusCode) -> u16 {
    match status {
        StatusCode::BAD_REQUEST => 3,                                   // INVALID_ARGUMENT
        StatusCode::REQUEST_TIMEOUT | StatusCode::GATEWAY_TIMEOUT => 4, // DEADLINE_EXCEEDED
        StatusCode::FORBIDDEN => 7,                                     // PERMISSION_DENIED
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            8
        } // RESOURCE_EXHAUSTED
        StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED => 12, // UNIMPLEMENTED
        StatusCode::INTERNAL_SERVER_ERROR => 13,                        // INTERNAL
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => 14, // UNAVAILABLE
        StatusCode::UNAUTHORIZED => 16,                                 // UNAUTHENTICATED
        _ => 2,                                                         // UNKNOWN
    }
}

/// A message as gRPC wants it in a header: everything but printable ASCII is escaped, and so is the percent sign.
fn percent_encoded(message: &str) -> HeaderValue {
    let mut text = String::with_capacity(message.len());
    for byte in message.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_known_by_its_media_type() {
        let is_grpc =
            |value: &'static str| is_grpc(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(value))]));
        for call in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc+json; charset=utf-8",
            "application/grpc;a=b",
            "application/grpc ;a=b",
            "application/grpc\t; a=b",
            "application/grpc ",
            "Application/gRPC+Proto",
        ] {
            assert!(is_grpc(call), "{call}");
        }
        for other in [
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/grpc +proto",
            "application/grpc a=b",
            "application/grpcs",
            "application/grp",
            "application/json",
            "text/application/grpc",
            "",
        ] {
            assert!(!is_grpc(other), "{other}");
        }
        assert!(!super::is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn a_status_has_one_code() {
        for (status, code) in [
            (400, "3"),
            (401, "16"),
            (403, "7"),
            (405, "12"),
            (408, "4"),
            (413, "8"),
            (418, "2"),
            (429, "8"),
            (431, "8"),
            (500, "13"),
            (501, "12"),
            (502, "14"),
            (503, "14"),
            (504, "4"),
        ] {
            let response = error_response(StatusCode::from_u16(status).unwrap(), "50 % café\n");
            assert_eq!(response.status(), StatusCode::OK);
            let headers = ["content-type", "grpc-status", "grpc-message"].map(|name| &response.headers()[name]);
            assert_eq!(headers, ["application/grpc", code, "50 %25 caf%C3%A9%0A"], "{status}");
        }
    }
}
