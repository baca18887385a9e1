//! Durations in the shortest text of mixed units (OB-13).

use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

/// `0s`, `5ms`, `12.5ms`, `1m0.5s`, `2h0m0s`.
pub(super) fn text(duration: Nanos) -> String {
    let sign = if duration < 0 { "-" } else { "" };
    let nanos = duration.unsigned_abs();
    let second = SECOND.unsigned_abs();
    if nanos == 0 {
        return "0s".to_owned();
    }
    if nanos < second {
        let units = [(MILLISECOND.unsigned_abs(), "ms"), (1_000, "µs"), (1, "ns")];
        let (size, unit) = units.into_iter().find(|(size, _)| nanos >= *size).unwrap_or((1, "ns"));
        return format!("{sign}{}{unit}", decimal(nanos, size));
    }
    let (minutes, rest) = (nanos / (60 * second), nanos % (60 * second));
    let seconds = decimal(rest, second);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{sign}{seconds}s"),
        (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
        (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
    }
}

/// A number of units with as many decimals as it needs. The size of the unit is a power of ten.
pub(super) fn decimal(amount: u64, size: u64) -> String {
    let digits = size.ilog10() as usize;
    let (whole, fraction) = (amount / size, amount % size);
    if fraction == 0 {
        return whole.to_string();
    }
    let fraction = format!("{fraction:0digits$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}

#[cfg(test)]
mod tests {
    #[test]
    fn ob_13_durations() {
        for (nanos, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5µs"),
            (5_000_000, "5ms"),
            (12_500_000, "12.5ms"),
            (999_999_999, "999.999999ms"),
            (1_000_000_000, "1s"),
            (60_500_000_000, "1m0.5s"),
            (60_000_000_000, "1m0s"),
            (7_200_000_000_000, "2h0m0s"),
            (-1_500_000_000, "-1.5s"),
        ] {
            assert_eq!(super::text(nanos), text);
        }
    }
}
