//! How long ago something was, in the few letters that a table has room for (API-176).

use evenkeel_api::meta::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago an object was created.
pub(super) fn age(created: Option<Time>, now: Time) -> String {
    match created {
        Some(created) => duration(now.unix_seconds().saturating_sub(created.unix_seconds())),
        None => "<unknown>".to_owned(),
    }
}

fn duration(seconds: i64) -> String {
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two_units((seconds / MINUTE, "m"), (seconds % MINUTE, "s")),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two_units((seconds / HOUR, "h"), (seconds / MINUTE % 60, "m")),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two_units((seconds / DAY, "d"), (seconds / HOUR % 24, "h")),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two_units((seconds / YEAR, "y"), (seconds / DAY % 365, "d")),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// Both numbers, or only the first where the second is zero.
fn two_units((large, large_unit): (i64, &str), (small, small_unit): (i64, &str)) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit}{small}{small_unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn api_176_the_unit_grows_with_the_age() {
        for (seconds, expected) in [
            (-10, "<invalid>"),
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (600, "10m"),
            (179 * MINUTE + 59, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (8 * HOUR + 1, "8h"),
            (48 * HOUR - 1, "47h"),
            (2 * DAY, "2d"),
            (8 * DAY - 1, "7d23h"),
            (8 * DAY, "8d"),
            (2 * YEAR - 1, "729d"),
            (2 * YEAR, "2y"),
            (8 * YEAR - 1, "7y364d"),
            (8 * YEAR, "8y"),
        ] {
            assert_eq!(duration(seconds), expected, "{seconds} seconds");
        }
        assert_eq!(age(None, Time::from_unix_seconds(0)), "<unknown>");
    }

    proptest! {
        #[test]
        fn any_two_times_have_an_age(created: i64, now: i64) {
            let (created, now) = (Time::from_unix_seconds(created), Time::from_unix_seconds(now));
            prop_assert!(age(Some(created), now).len() < 12);
        }
    }
}
