//! The value of a metric on a page in the text format of Prometheus.

/// The sum of all series of a metric; `None` if there are none, or none with a number.
pub(super) fn sum_of(metric: &str, page: &[u8]) -> Option<f64> {
    let values = page.split(|byte| *byte == b'\n').filter_map(|line| value(metric, std::str::from_utf8(line).ok()?));
    values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
}

/// The value on a line, if it is one of the metric: `name{labels} value timestamp`.
fn value(metric: &str, line: &str) -> Option<f64> {
    let rest = line.trim_start().strip_prefix(metric)?;
    let rest = match rest.strip_prefix('{') {
        Some(labels) => labels.get(end_of_labels(labels)? + 1..)?,
        // The line may be of another metric whose name begins in the same way.
        None => rest.strip_prefix([' ', '\t'])?,
    };
    rest.split_ascii_whitespace().next()?.parse().ok().filter(|value: &f64| value.is_finite())
}

/// Where the labels end: at the first brace outside of a text.
fn end_of_labels(labels: &str) -> Option<usize> {
    let (mut is_text, mut is_escaped) = (false, false);
    labels.bytes().position(|byte| {
        let is_end = byte == b'}' && !is_text;
        if byte == b'"' && !is_escaped {
            is_text = !is_text;
        }
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AL-10
    #[test]
    fn the_series_of_a_metric_are_added_up() {
        let page = b"# HELP waiting Requests\n# TYPE waiting gauge\nwaiting{model=\"a}\\\" b\"} 3 1700000000\nwaiting{model=\"c\"} 4.5\r\n\
                     waiting_more 100\nother{a=\"waiting 9\"} 1\nwaiting NaN\nwaiting{broken=\"} 7\n\xff\xfe waiting 8\nwaiting\n";
        assert_eq!(sum_of("waiting", page), Some(7.5));
        assert_eq!(sum_of("waiting_more", page), Some(100.0));
        assert_eq!(sum_of("absent", page), None);
        assert_eq!(sum_of("waiting", b""), None);
    }
}
