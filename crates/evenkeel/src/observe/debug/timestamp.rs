//! Points in time as dumps write them (OB-13).

use evenkeel_api::meta::Time;
use evenkeel_engine::time::SECOND;

use super::duration::decimal;

/// What stands for a time that has not come.
pub(super) const NEVER: &str = "0001-01-01T00:00:00Z";

/// UTC, with as many decimals as it needs, given nanoseconds since 1970 began.
pub(super) fn text(unix_nanos: i64) -> String {
    let second = Time::from_unix_seconds(unix_nanos.div_euclid(SECOND)).to_string();
    let fraction = decimal(unix_nanos.rem_euclid(SECOND).unsigned_abs(), SECOND.unsigned_abs());
    match fraction.strip_prefix("0.") {
        Some(decimals) => format!("{}.{decimals}Z", second.trim_end_matches('Z')),
        None => second,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ob_13_times() {
        for (nanos, text) in [
            (1_767_225_600_000_000_000, "2026-01-01T00:00:00Z"),
            (1_767_225_600_002_000_000, "2026-01-01T00:00:00.002Z"),
            (1_767_225_600_002_500_000, "2026-01-01T00:00:00.0025Z"),
            (1_767_225_600_000_000_001, "2026-01-01T00:00:00.000000001Z"),
            (-1, "1969-12-31T23:59:59.999999999Z"),
        ] {
            assert_eq!(super::text(nanos), text);
        }
    }
}
