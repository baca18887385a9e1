//! How much time a request says that it has (HF-7): the parameter `timeout` of Kubernetes, and the header of gRPC.

use std::time::Duration;

use evenkeel_engine::digest::{Query, parse_duration};
use http::Method;
use http::request::Parts;

use crate::layer::grpc::is_grpc;

const GRPC_TIMEOUT: &str = "grpc-timeout";

/// The time that a call of gRPC gives itself, if it is one and says so.
pub(crate) fn of_grpc(parts: &Parts) -> Option<Duration> {
    // All calls are of this method, and most requests are not.
    if parts.method != Method::POST || !is_grpc(&parts.headers) {
        return None;
    }
    grpc_timeout(parts.headers.get(GRPC_TIMEOUT)?.to_str().ok()?)
}

/// The time that the query of a Kubernetes request names, if it names any.
pub(crate) fn of_kubernetes(query: Query<'_>) -> Option<Duration> {
    if query.as_str().is_empty() {
        return None;
    }
    parse_duration(&query.first("timeout")?).ok()
}

/// At most eight digits and a unit.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use http::header::CONTENT_TYPE;

    use super::*;

    #[test]
    fn hf_7_the_parameter_is_a_duration_of_go() {
        let of = |query| of_kubernetes(Query::new(query)).map(|timeout| timeout.as_millis());
        for (query, millis) in [
            ("timeout=8s", 8_000),
            ("limit=5&timeout=500ms&timeout=9s", 500),
            ("timeout=1m30s", 90_000),
            ("timeout=1.5h", 5_400_000),
            ("timeout=%2B.5s", 500),
            ("timeout=2.s3ms", 2_003),
            ("timeout=3000us", 3),
            ("timeout=3000%C2%B5s", 3),
            ("timeout=0", 0),
            ("timeout=0s", 0),
            ("timeout=-8s", 0),
        ] {
            assert_eq!(of(query), Some(millis), "{query}");
        }
        for query in [
            "",
            "timeout",
            "timeout=",
            "timeout=8",
            "timeout=s",
            "timeout=.s",
            "timeout=1..2s",
            "timeout=8 s",
            "timeout=8x",
            "timeout=1e3s",
            "timeout=8s9",
            "timeouts=8s",
            "timeout=99999999999999999999h",
        ] {
            assert_eq!(of(query), None, "{query}");
        }
    }

    #[test]
    fn the_header_of_grpc_is_eight_digits_and_a_unit() {
        for (text, timeout) in [
            ("1H", Duration::from_secs(3600)),
            ("2M", Duration::from_secs(120)),
            ("8S", Duration::from_secs(8)),
            ("99999999m", Duration::from_millis(99_999_999)),
            ("5u", Duration::from_micros(5)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(grpc_timeout(text), Some(timeout), "{text}");
        }
        for text in ["", "S", "8", "8s", "123456789S", "-1S", "+1S", "1.5S", "8 S", "8é"] {
            assert_eq!(grpc_timeout(text), None, "{text}");
        }
    }

    #[test]
    fn only_calls_of_grpc_have_its_header() {
        let timeout = |method: &str, kind: &str| {
            let request = http::Request::builder().method(method).header(CONTENT_TYPE, kind).header(GRPC_TIMEOUT, "8S");
            of_grpc(&request.body(()).unwrap().into_parts().0)
        };
        assert_eq!(timeout("POST", "application/grpc"), Some(Duration::from_secs(8)));
        assert_eq!(timeout("POST", "application/grpc-web+proto"), None);
        assert_eq!(timeout("POST", "application/json"), None);
        assert_eq!(timeout("GET", "application/grpc"), None);
    }
}
