//! Numbers and times as people read them.

use std::time::Duration;

/// `1,234 ms`, or a dash if there is nothing to tell.
pub(crate) fn milliseconds(duration: Option<Duration>) -> String {
    let rounded = |duration: Duration| usize::try_from((duration.as_micros() + 500) / 1000).unwrap_or(usize::MAX);
    duration.map_or_else(|| "-".to_owned(), |duration| format!("{} ms", thousands(rounded(duration))))
}

/// `12,345`.
pub(crate) fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The time of day in UTC, `10:51:33`.
pub(crate) fn clock(time_ms: u64) -> String {
    let seconds = time_ms / 1000;
    format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(thousands), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(milliseconds(Some(Duration::from_micros(1500))), "2 ms");
        assert_eq!(milliseconds(None), "-");
    }
}
