//! Durations as people write them: `10s`, `1m30s`, `250ms`.

use std::time::Duration;

/// The units, the longest first, in milliseconds.
const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Reads `1m30s`. Whole numbers with a unit each; a bare `0` needs none. The error says what is wrong and what to write.
///
/// ```
/// use std::time::Duration;
/// use evenkeel_api::duration;
///
/// assert_eq!(duration::parse("1m30s"), Ok(Duration::from_secs(90)));
/// assert!(duration::parse("5").unwrap_err().starts_with("\"5\" is not a duration"));
/// ```
pub fn parse(text: &str) -> Result<Duration, String> {
    let fault = || format!("{text:?} is not a duration; write one as `250ms`, `10s` or `1m30s`");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut milliseconds = 0_u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(fault)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(fault)?;
        let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(*factor)).ok_or_else(fault)?;
        milliseconds = milliseconds.checked_add(part).ok_or_else(fault)?;
        rest = next;
    }
    if text.is_empty() { Err(fault()) } else { Ok(Duration::from_millis(milliseconds)) }
}

/// Writes it as [`parse`] reads it, in whole milliseconds.
pub fn text(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, factor) in UNITS {
        if rest >= factor {
            text += &format!("{}{unit}", rest / factor);
            rest %= factor;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (written, milliseconds) in
            [("0s", 0), ("250ms", 250), ("10s", 10_000), ("1m30s", 90_000), ("2h", 7_200_000)]
        {
            let duration = Duration::from_millis(milliseconds);
            assert_eq!((parse(written), text(duration)), (Ok(duration), written.to_owned()));
        }
        for wrong in ["", "10", "s", "10x", "-1s", "1 s", "99999999999999999999s", "9999999999999999h"] {
            assert!(parse(wrong).unwrap_err().contains("is not a duration"), "{wrong}");
        }
    }
}
