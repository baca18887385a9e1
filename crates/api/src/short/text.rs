//! A short form as text: a line for each level and for each match.

use std::fmt;

use serde_json::Value;

use super::ShortForm;

/// A value as YAML has it inside of `{}` and `[]`.
struct Flow<'a>(&'a Value);

// === impl ShortForm ===

impl fmt::Display for ShortForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.levels.is_empty() {
            f.write_str("levels:\n")?;
        }
        for (name, level) in &self.levels.0 {
            writeln!(f, "  {}: {}", Flow(&name.as_str().into()), Line(&level.members()))?;
        }
        if !self.rules.is_empty() {
            f.write_str("match:\n")?;
        }
        for rule in &self.rules {
            writeln!(f, "- {}", Line(&rule.members()))?;
        }
        Ok(())
    }
}

/// The members of a level or of a match.
struct Line<'a>(&'a [(&'static str, Value)]);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let members = self.0.iter().map(|(key, value)| format!("{key}: {}", Flow(value)));
        write!(f, "{{{}}}", members.collect::<Vec<_>>().join(", "))
    }
}

// === impl Flow ===

impl fmt::Display for Flow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::String(text) if is_plain(text) => f.write_str(text),
            Value::Array(values) => {
                let values: Vec<String> = values.iter().map(|value| Flow(value).to_string()).collect();
                write!(f, "[{}]", values.join(", "))
            }
            Value::Object(members) => {
                let members =
                    members.iter().map(|(key, value)| format!("{}: {}", Flow(&key.as_str().into()), Flow(value)));
                write!(f, "{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            // A text of JSON is one of YAML.
            other => write!(f, "{other}"),
        }
    }
}

/// Whether a text means itself without quotes, and nothing else.
fn is_plain(text: &str) -> bool {
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./%*".contains(&byte);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'/');
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let is_word = words.iter().any(|word| word.eq_ignore_ascii_case(text));
    begins && text.bytes().all(is_sound) && !is_word
        || is_percentage(text)
        || is_duration(text)
        || is_header(text)
        || is_rate(text)
}

fn is_percentage(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

fn is_duration(text: &str) -> bool {
    text.ends_with(['s', 'm', 'h']) && crate::duration::parse(text).is_ok()
}

/// `100/s;burst=50`: YAML takes it for a text without quotes too.
fn is_rate(text: &str) -> bool {
    !text.contains(' ') && text.parse::<crate::annotations::Rate>().is_ok()
}

/// `header:NAME`: a colon without a space behind it is nothing special.
fn is_header(text: &str) -> bool {
    text.strip_prefix("header:")
        .is_some_and(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'))
}
