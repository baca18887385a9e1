//! Numbers and durations as parameters spell them, and the words for those that make no sense (API-76, API-77, API-156).

use std::time::Duration;

use evenkeel_api::validate::Value;

/// Units of durations, in nanoseconds.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// A whole number with a sign or without.
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| problem("ParseInt", text))
}

/// A whole number without a sign.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    // A plus sign, which Rust takes, is not part of a number here.
    let digits = if text.starts_with('+') { "" } else { text };
    digits.parse().map_err(|_| problem("ParseUint", text))
}

/// Whether a parameter says yes (API-76).
pub(crate) fn is_true(text: &str) -> bool {
    text != "0" && !text.eq_ignore_ascii_case("false")
}

/// A duration such as `32s` or `1m30s`. One below zero is as good as none.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("time: invalid duration {}", Value::text(text));
    let (sign, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (-1.0, &text[1..]),
        Some(b'+') => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut nanos = 0.0;
    loop {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let value: f64 = rest[..number].parse().map_err(|_| fault())?;
        rest = &rest[number..];
        let unit = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
        let name = &rest[..unit];
        if name.is_empty() {
            return Err(format!("time: missing unit in duration {}", Value::text(text)));
        }
        let Some((_, factor)) = UNITS.iter().find(|(known, _)| *known == name) else {
            return Err(format!("time: unknown unit {} in duration {}", Value::text(name), Value::text(text)));
        };
        nanos += value * factor;
        rest = &rest[unit..];
        if rest.is_empty() {
            return Duration::try_from_secs_f64((sign * nanos / 1e9).max(0.0)).map_err(|_| fault());
        }
    }
}

fn problem(function: &str, text: &str) -> String {
    let digits = text.strip_prefix('-').filter(|_| function == "ParseInt").unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let what = if is_number { "value out of range" } else { "invalid syntax" };
    format!("strconv.{function}: parsing {}: {what}", Value::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_76_numbers() {
        assert_eq!((parse_int("-5"), parse_uint("5")), (Ok(-5), Ok(5)));
        for (text, what) in
            [("", "invalid syntax"), ("1.5", "invalid syntax"), ("99999999999999999999", "value out of range")]
        {
            assert_eq!(parse_int(text), Err(format!("strconv.ParseInt: parsing {text:?}: {what}")));
            assert_eq!(parse_uint(text), Err(format!("strconv.ParseUint: parsing {text:?}: {what}")));
        }
        for text in ["-1", "+1"] {
            assert_eq!(parse_uint(text), Err(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")));
        }
        assert!(is_true("") && is_true("maybe") && !is_true("False") && !is_true("0"));
    }

    #[test]
    fn api_77_durations() {
        for (text, milliseconds) in [("32s", 32_000), ("1m30s", 90_000), ("1.5h", 5_400_000), ("0", 0), ("-1s", 0)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for (text, what) in [
            ("nonsense", "time: invalid duration \"nonsense\""),
            ("", "time: invalid duration \"\""),
            ("5", "time: missing unit in duration \"5\""),
            ("5x", "time: unknown unit \"x\" in duration \"5x\""),
            ("999999999999999999999999999h", "time: invalid duration \"999999999999999999999999999h\""),
        ] {
            assert_eq!(parse_duration(text), Err(what.to_owned()));
        }
    }
}
