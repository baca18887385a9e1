//! Durations in the queries of Kubernetes requests: `timeout=1m30s` (HF-7, API-77).

use std::time::Duration;

use evenkeel_api::validate::Value;

/// Why a text is no duration, in the words that clients know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// The duration is not made of numbers with units, or is too long.
    #[error("time: invalid duration {}", Value::text(.0))]
    Invalid(String),
    /// A number has no unit.
    #[error("time: missing unit in duration {}", Value::text(.0))]
    NoUnit(String),
    /// A number has a unit that there is not.
    #[error("time: unknown unit {} in duration {}", Value::text(.unit), Value::text(.text))]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
}

/// Units, in seconds.
const UNITS: [(&str, f64); 8] =
    [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("μs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Reads numbers with units, such as `32s`, `1m30s` or `1.5h`. One below zero is as good as none: it gives zero.
///
/// ```
/// use std::time::Duration;
/// use evenkeel_engine::digest::parse_duration;
///
/// assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
/// assert_eq!(parse_duration("5").unwrap_err().to_string(), "time: missing unit in duration \"5\"");
/// ```
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (sign, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut seconds = 0.0;
    loop {
        let (number, after) = cut(rest, |letter| !is_of_number(letter));
        let value: f64 = number.parse().map_err(|_| invalid())?;
        let (unit, after) = cut(after, is_of_number);
        if unit.is_empty() {
            return Err(DurationError::NoUnit(text.to_owned()));
        }
        let Some((_, factor)) = UNITS.iter().find(|(known, _)| *known == unit) else {
            return Err(DurationError::UnknownUnit { unit: unit.to_owned(), text: text.to_owned() });
        };
        seconds += value * factor;
        if after.is_empty() {
            return Duration::try_from_secs_f64(f64::max(sign * seconds, 0.0)).map_err(|_| invalid());
        }
        rest = after;
    }
}

/// What comes before the first letter of that sort, and the rest.
fn cut(text: &str, is_end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(is_end).unwrap_or(text.len()))
}

fn is_of_number(letter: char) -> bool {
    letter.is_ascii_digit() || letter == '.'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_77_durations() {
        for (text, milliseconds) in [
            ("32s", 32_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("0", 0),
            ("-1s", 0),
            ("+.5s", 500),
            ("2.s3ms", 2003),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for (text, what) in [
            ("nonsense", "time: invalid duration \"nonsense\""),
            ("", "time: invalid duration \"\""),
            (".s", "time: invalid duration \".s\""),
            ("1..2s", "time: invalid duration \"1..2s\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("999999999999999999999999999h", "time: invalid duration \"999999999999999999999999999h\""),
        ] {
            assert_eq!(parse_duration(text).unwrap_err().to_string(), what);
        }
    }
}
