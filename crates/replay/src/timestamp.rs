//! Points in time as logs write them, in nanoseconds since 1970.

use evenkeel_engine::time::{Instant, Nanos, SECOND};

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Reads `2026-11-16T10:51:03.604580Z`, with any number of decimals and any offset.
pub(crate) fn rfc3339(text: &str) -> Option<Instant> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if bytes.len() < 20 || separators.iter().any(|&(at, separator)| bytes[at] != separator) {
        return None;
    }
    let number = |range: std::ops::Range<usize>| digits(&bytes[range]);
    let days = days(number(0..4)?, number(5..7)?, number(8..10)?)?;
    let second = second_of_day(number(11..13)?, number(14..16)?, number(17..19)?)?;
    let (nanos, zone) = match &bytes[19..] {
        [b'.', rest @ ..] => {
            let end = rest.iter().position(|byte| !byte.is_ascii_digit())?;
            (fraction(&rest[..end])?, &rest[end..])
        }
        rest => (0, rest),
    };
    let offset = match zone {
        b"Z" | b"z" => 0,
        zone => offset(zone)?,
    };
    instant(days, second - offset, nanos)
}

/// Reads `16/Nov/2026:10:51:03 +0000`.
pub(crate) fn common_log(text: &str) -> Option<Instant> {
    let (day, rest) = text.split_once('/')?;
    let (month, rest) = rest.split_once('/')?;
    let (year, rest) = rest.split_once(':')?;
    let (time, zone) = rest.split_once(' ')?;
    let month = 1 + i64::try_from(MONTHS.iter().position(|known| *known == month)?).ok()?;
    let days = days(digits(year.as_bytes())?, month, digits(day.as_bytes())?)?;
    let mut parts = time.split(':').map(|part| digits(part.as_bytes()));
    let second = second_of_day(parts.next()??, parts.next()??, parts.next()??)?;
    instant(days, second - offset(zone.as_bytes())?, 0)
}

/// Reads `1116 10:51:03.694730`, which has no year. The year is taken to be a leap year, so that every day exists.
pub(crate) fn klog(text: &str) -> Option<Instant> {
    let bytes = text.as_bytes();
    if bytes.len() < 13 || bytes[4] != b' ' || bytes[7] != b':' || bytes[10] != b':' {
        return None;
    }
    let number = |range: std::ops::Range<usize>| digits(&bytes[range]);
    let days = days(1972, number(0..2)?, number(2..4)?)?;
    let second = second_of_day(number(5..7)?, number(8..10)?, number(11..13)?)?;
    let nanos = match &bytes[13..] {
        [] => 0,
        [b'.', rest @ ..] => fraction(rest)?,
        _ => return None,
    };
    instant(days, second, nanos)
}

/// Reads a number of seconds with decimals: `1763290263.604`.
pub(crate) fn unix_seconds(text: &str) -> Option<Instant> {
    seconds(text).map(Instant::from_nanos)
}

/// Reads a span in seconds with decimals: `0.254`. Nothing below zero is a span.
pub(crate) fn seconds(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let nanos = if decimals.is_empty() { 0 } else { fraction(decimals.as_bytes())? };
    digits(whole.as_bytes())?.checked_mul(SECOND)?.checked_add(nanos)
}

/// A span in milliseconds; `None` if it is negative or longer than the clock can count.
pub(crate) fn milliseconds(number: f64) -> Option<Nanos> {
    const LONGEST: f64 = 1e12;
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (0.0..=LONGEST).contains(&number).then_some((number * 1e6).round() as Nanos)
}

fn instant(days: i64, second: i64, nanos: Nanos) -> Option<Instant> {
    let seconds = days.checked_mul(86_400)?.checked_add(second)?;
    Some(Instant::from_nanos(seconds.checked_mul(SECOND)?.checked_add(nanos)?))
}

/// Days from 1970 to a day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years start in March, so that the leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    Some(365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + day_of_year - 719_468)
}

fn second_of_day(hour: i64, minute: i64, second: i64) -> Option<i64> {
    // Second 60 is a leap second.
    (hour < 24 && minute < 60 && second <= 60).then_some(hour * 3600 + minute * 60 + second)
}

/// Reads `+02:00` or `+0200`, in seconds.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, hours, minutes) = match zone {
        [sign, hour @ .., b':', a, b] if hour.len() == 2 => (*sign, hour, [*a, *b]),
        [sign, hour @ .., a, b] if hour.len() == 2 => (*sign, hour, [*a, *b]),
        _ => return None,
    };
    let seconds = digits(hours)? * 3600 + digits(&minutes)? * 60;
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// Decimals, as nanoseconds. Smaller parts are cut off.
fn fraction(decimals: &[u8]) -> Option<Nanos> {
    let kept = &decimals[..decimals.len().min(9)];
    let mut nanos = digits(kept)?;
    for _ in kept.len()..9 {
        nanos *= 10;
    }
    decimals[kept.len()..].iter().all(u8::is_ascii_digit).then_some(nanos)
}

#[inline]
fn digits(bytes: &[u8]) -> Option<i64> {
    if bytes.is_empty() || bytes.len() > 18 {
        return None;
    }
    bytes.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_51: i64 = 1_794_826_263;

    #[test]
    fn rfc3339_times() {
        for (text, nanos) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-16T10:51:03Z", TEN_51 * SECOND),
            ("2026-11-16T10:51:03.604580Z", TEN_51 * SECOND + 604_580_000),
            ("2026-11-16T12:51:03.5+02:00", TEN_51 * SECOND + 500_000_000),
            ("2026-11-16T05:21:03.000000001999-05:30", TEN_51 * SECOND + 1),
            ("2024-02-29T00:00:00Z", 1_709_164_800 * SECOND),
            ("1969-12-31T23:59:59Z", -SECOND),
        ] {
            assert_eq!(rfc3339(text), Some(Instant::from_nanos(nanos)), "{text}");
        }
        for text in [
            "",
            "2026-11-16",
            "2026-11-16T10:51:03",
            "2026-11-16T10:51:03.Z",
            "2026-11-16T10:51:03.12",
            "2026-13-16T10:51:03Z",
            "2026-11-16T24:51:03Z",
            "2026-11-16T10:51:03+2:00",
            "2026-11-16T10:51:0éZ",
            "9999999-11-16T10:51:03Z",
        ] {
            assert_eq!(rfc3339(text), None, "{text}");
        }
    }

    #[test]
    fn other_times() {
        let at = |nanos| Some(Instant::from_nanos(nanos));
        assert_eq!(common_log("16/Nov/2026:10:51:03 +0000"), at(TEN_51 * SECOND));
        assert_eq!(common_log("16/Nov/2026:11:51:03 +0100"), at(TEN_51 * SECOND));
        assert_eq!(common_log("16/Nix/2026:11:51:03 +0100"), None);
        assert_eq!(unix_seconds("1794826263.604"), at(TEN_51 * SECOND + 604_000_000));
        assert_eq!(unix_seconds("-"), None);
        let [early, late] = ["1116 10:51:03.694730", "1116 10:51:04"].map(|text| klog(text).unwrap());
        assert_eq!(late - early, 305_270_000);
        assert!(klog("0229 00:00:00.1").is_some());
        assert_eq!(klog("x116 10:51:03.694730"), None);
    }

    #[test]
    fn spans() {
        assert_eq!(seconds("0.254"), Some(254_000_000));
        assert_eq!(seconds("12"), Some(12 * SECOND));
        assert_eq!(seconds("-1"), None);
        assert_eq!(seconds("99999999999999999"), None);
        assert_eq!(milliseconds(1.5), Some(1_500_000));
        assert_eq!(milliseconds(-0.5), None);
        assert_eq!(milliseconds(f64::NAN), None);
    }
}
