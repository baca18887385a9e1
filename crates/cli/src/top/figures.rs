//! Figures as people read them at a glance, in few characters.

/// `0 ms`, `8.5 ms`, `120 ms`, `1.4 s`, `75 s`.
pub(super) fn milliseconds(ms: f64) -> String {
    match ms {
        ms if !ms.is_finite() || ms < 0.05 => "0 ms".to_owned(),
        ms if ms < 9.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms if ms < 9950.0 => format!("{:.1} s", ms / 1000.0),
        ms => format!("{:.0} s", ms / 1000.0),
    }
}

/// A number of seats or requests, or a rate: `0`, `0.4`, `3.5`, `120`, `12.3k`, `1.2M`.
pub(super) fn amount(value: f64) -> String {
    match value {
        value if !value.is_finite() || value.abs() < 0.05 => "0".to_owned(),
        value if value.abs() < 9.95 && (value - value.round()).abs() > 0.04 => format!("{value:.1}"),
        value if value.abs() < 9999.5 => format!("{value:.0}"),
        value if value.abs() < 999_500.0 => format!("{:.1}k", value / 1e3),
        value => format!("{:.1}M", value / 1e6),
    }
}

/// `71 %`.
pub(super) fn percent(ratio: f64) -> String {
    if ratio.is_finite() { format!("{:.0} %", ratio * 100.0) } else { "-".to_owned() }
}

/// A part of a whole.
pub(super) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

pub(super) use crate::terminal::clock;

/// `1 seat`, `2 seats`.
pub(super) fn counted(number: i64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A number of seats as a float, for shares.
#[expect(clippy::cast_precision_loss, reason = "numbers of seats are small")]
pub(super) fn float(number: i64) -> f64 {
    number as f64
}

/// The last values as a line of bars, from nothing to all and more.
pub(super) fn trend<'a>(ratios: impl ExactSizeIterator<Item = &'a f32>, width: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let skipped = ratios.len().saturating_sub(width);
    let bar = |ratio: &f32| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the conversion saturates")]
        let height = (ratio * 7.0).round() as usize;
        BARS[height.min(7)]
    };
    ratios.skip(skipped).map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        let times = [0.0, 0.04, 8.46, 119.6, 1400.0, 75_000.0, f64::NAN].map(milliseconds);
        assert_eq!(times, ["0 ms", "0 ms", "8.5 ms", "120 ms", "1.4 s", "75 s", "0 ms"]);
        let amounts = [0.0, 0.42, 1.0, 3.5, 120.4, 12_345.0, 1_234_567.0, f64::INFINITY].map(amount);
        assert_eq!(amounts, ["0", "0.4", "1", "3.5", "120", "12.3k", "1.2M", "0"]);
        assert_eq!((percent(0.714), percent(f64::NAN)), ("71 %".to_owned(), "-".to_owned()));
        assert_eq!(clock(1_763_290_293_000), "10:51:33");
        assert_eq!((counted(1, "seat"), counted(0, "seat")), ("1 seat".to_owned(), "0 seats".to_owned()));
        assert_eq!(trend([0.0, 0.5, 1.0, 9.0, f32::NAN].iter(), 4), "▅██▁");
    }
}
