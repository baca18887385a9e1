//! Samples of the Prometheus text format and of `OpenMetrics`, a line at a time. Lines that cannot be read are skipped.

use std::borrow::Cow;

/// A value of a series.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sample<'a> {
    pub(super) name: &'a str,
    labels: Labels<'a>,
    pub(super) value: f64,
}

/// Names and values.
type Labels<'a> = Vec<(&'a str, Cow<'a, str>)>;

/// The most labels of a series: more than any series has that is wanted.
const LABELS_MAX: usize = 32;

// === impl Sample ===

impl<'a> Sample<'a> {
    /// Reads a line. `None` for comments, empty lines, and lines that are not in the format.
    ///
    /// Time stamps and exemplars, which may follow the value, are ignored.
    pub(super) fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim_start();
        let name_end = line.find(|c: char| !is_of_name(c)).filter(|end| *end > 0)?;
        let (name, rest) = line.split_at(name_end);
        let rest = rest.trim_start_matches(is_blank);
        let (labels, rest) = match rest.strip_prefix('{') {
            Some(labels) => parse_labels(labels)?,
            None if line[name_end..].starts_with(is_blank) => (Vec::new(), rest),
            None => return None,
        };
        let value = rest.split(is_blank).find(|part| !part.is_empty())?;
        Some(Self { name, labels, value: parse_number(value)? })
    }

    /// The value of a label, empty if there is none: the format makes no difference.
    pub(super) fn label(&self, name: &str) -> &str {
        self.labels.iter().find(|(label, _)| *label == name).map_or("", |(_, value)| value)
    }
}

/// A number as Prometheus writes it.
pub(super) fn parse_number(text: &str) -> Option<f64> {
    // Rust reads `inf`, `+Inf` and `NaN` in any case, and `infinity`, which is harmless.
    text.parse().ok()
}

/// Labels up to the closing brace, and what follows it.
fn parse_labels(text: &str) -> Option<(Labels<'_>, &str)> {
    let mut labels = Vec::new();
    let mut rest = text.trim_start_matches(is_blank);
    loop {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, after_name) = rest.split_once('=')?;
        let value = after_name.trim_start_matches(is_blank).strip_prefix('"')?;
        let (value, after_value) = parse_value(value)?;
        if labels.len() < LABELS_MAX {
            labels.push((name.trim_matches(is_blank), value));
        }
        rest = after_value.trim_start_matches(is_blank);
        rest = match rest.strip_prefix(',') {
            Some(next) => next.trim_start_matches(is_blank),
            None if rest.starts_with('}') => rest,
            None => return None,
        };
    }
}

/// The value of a label up to the closing quote, and what follows it.
fn parse_value(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let end = text.find(['"', '\\'])?;
    if text[end..].starts_with('"') {
        return Some((Cow::Borrowed(&text[..end]), &text[end + 1..]));
    }
    let mut value = text[..end].to_owned();
    let mut characters = text[end..].char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((Cow::Owned(value), &text[end + at + 1..])),
            '\\' => match characters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            other => value.push(other),
        }
    }
    None
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == ':'
}

fn is_blank(character: char) -> bool {
    character == ' ' || character == '\t'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read<'a>(line: &'a str, labels: &[&str]) -> (&'a str, Vec<String>, f64) {
        let sample = Sample::parse(line).unwrap_or_else(|| panic!("cannot read {line:?}"));
        (sample.name, labels.iter().map(|label| sample.label(label).to_owned()).collect(), sample.value)
    }

    #[test]
    fn samples() {
        let none = Vec::<String>::new;
        assert_eq!(read("up 1", &[]), ("up", none(), 1.0));
        assert_eq!(read("  up\t 1.5e+3 1700000000000", &[]), ("up", none(), 1500.0));
        assert_eq!(read("up{} -Inf", &[]), ("up", none(), f64::NEG_INFINITY));
        let values = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            read(r#"a_bucket{le="+Inf",x="b"} 7"#, &["x", "le", "y"]),
            ("a_bucket", values(&["b", "+Inf", ""]), 7.0)
        );
        // Blanks, and a comma at the end.
        assert_eq!(read(r#"a { x = "1" , y="2", } 3"#, &["x", "y"]), ("a", values(&["1", "2"]), 3.0));
        // Characters that end a label elsewhere, escapes, and text of any kind.
        assert_eq!(read(r#"a{x="},\"\\\n=ä ",y="2"} 3"#, &["x", "y"]), ("a", values(&["},\"\\\n=ä ", "2"]), 3.0));
        // OpenMetrics: a time stamp with a fraction, and an exemplar.
        assert_eq!(
            read(r#"a_total{x="1"} 3 1.5 # {id="z"} 0.5 1.4"#, &["x", "id"]),
            ("a_total", values(&["1", ""]), 3.0)
        );
        assert!(read("a NaN", &[]).2.is_nan());
    }

    #[test]
    fn what_is_no_sample_is_skipped() {
        let lines = [
            "",
            "   ",
            "# HELP a b",
            "# TYPE a counter",
            "# EOF",
            "a",
            "a ",
            "a{",
            r#"a{x="1""#,
            r#"a{x="1} 2"#,
            r#"a{x="1"y="2"} 2"#,
            r"a{x=1} 2",
            "a{x} 2",
            r#"a{x="\"#,
            "a one",
            "1.5",
            "{\"a.b\"} 1",
            "ä 1",
            "a=1",
        ];
        for line in lines {
            assert_eq!(Sample::parse(line), None, "{line:?}");
        }
    }
}
