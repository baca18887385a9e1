//! Numbers, times and names, as a sentence has them.

use super::super::Flow;

/// The flow as people call it: by its user or namespace, or by its schema.
pub(super) fn flow_name(flow: &Flow) -> &str {
    if flow.distinguisher.is_empty() { &flow.schema } else { &flow.distinguisher }
}

/// `six times slower`; `threefold`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is rounded and small")]
pub(super) fn times(factor: f64, what: &str) -> String {
    const WORDS: [&str; 11] = ["", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let rounded = factor.round().max(2.0);
    let word = WORDS.get(rounded as usize).map_or_else(|| format!("{rounded}"), |word| (*word).to_owned());
    if what == "fold" {
        return if rounded <= 10.0 { format!("{word}fold") } else { format!("{word}-fold") };
    }
    if rounded <= 2.0 { "twice as slow".to_owned() } else { format!("{word} times {what}") }
}

/// The time of day of a moment, in UTC.
pub(super) fn clock(time_ms: u64) -> String {
    let minutes = time_ms / 60_000;
    format!("{:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
}

pub(super) fn milliseconds(value: f64) -> String {
    match value {
        long if long >= 10_000.0 => format!("{:.0} s", long / 1000.0),
        long if long >= 1000.0 => format!("{:.1} s", long / 1000.0),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

pub(super) fn quantity(value: f64) -> String {
    let text = if value >= 9.95 { format!("{value:.0}") } else { format!("{value:.1}") };
    text.strip_suffix(".0").map_or(text.clone(), ToOwned::to_owned)
}

/// `48 of 50 requests a second`; `all 50 requests a second`.
pub(super) fn part_of(part: f64, all: f64) -> String {
    if part >= 0.995 * all {
        return format!("all {} requests a second", quantity(part));
    }
    format!("{} of {} requests a second", quantity(part), quantity(all))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(super) fn mebibytes(bytes: u64) -> String {
    quantity(bytes as f64 / f64::from(1 << 20))
}
