//! Whether a response says that the upstream itself failed.

use http::{HeaderMap, StatusCode};

/// The status of a gRPC call, where the head of the response is all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GrpcStatus(u8);

// The codes that gRPC defines.
const UNKNOWN: u8 = 2;
const INTERNAL: u8 = 13;
const UNAVAILABLE: u8 = 14;
const DATA_LOSS: u8 = 15;

/// Whether an upstream with this response failed. Requests for something that the upstream does not have (501, 505) are the
/// client's fault; so are deadlines and quotas of gRPC. A call that fails after its first message has a head like any other, and
/// counts as served.
pub(super) fn is_error(status: StatusCode, grpc: Option<GrpcStatus>) -> bool {
    match grpc {
        Some(GrpcStatus(code)) if !status.is_server_error() => {
            matches!(code, UNKNOWN | INTERNAL | UNAVAILABLE | DATA_LOSS)
        }
        _ => {
            status.is_server_error()
                && !matches!(status, StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED)
        }
    }
}

// === impl GrpcStatus ===

impl GrpcStatus {
    /// The status in the head of a response, if it is there.
    pub(crate) fn of(headers: &HeaderMap) -> Option<Self> {
        headers.get("grpc-status")?.to_str().ok()?.parse().ok().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn what_the_upstream_did_not_manage_is_an_error_and_what_it_refuses_is_not() {
        for (status, expected) in [
            (200, false),
            (404, false),
            (429, false),
            (500, true),
            (501, false),
            (502, true),
            (503, true),
            (504, true),
            (505, false),
            (599, true),
            (600, false),
        ] {
            assert_eq!(is_error(StatusCode::from_u16(status).unwrap(), None), expected, "{status}");
        }
    }

    #[test]
    fn a_grpc_call_that_ends_in_its_head_has_a_status() {
        for (value, expected) in [
            ("0", false),
            ("2", true),
            ("4", false),
            ("8", false),
            ("12", false),
            ("13", true),
            ("14", true),
            ("x", false),
        ] {
            let headers =
                HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), HeaderValue::from_static(value))]);
            assert_eq!(is_error(StatusCode::OK, GrpcStatus::of(&headers)), expected, "{value}");
        }
        assert!(is_error(StatusCode::SERVICE_UNAVAILABLE, Some(GrpcStatus(0))));
        assert_eq!(GrpcStatus::of(&HeaderMap::new()), None);
    }
}
