//! Format strings of nginx (`$remote_addr - …`) and Envoy (`[%START_TIME%] …`), and lines that follow them.

use std::borrow::Cow;

use super::exchange::LoggedExchange;
use super::field::LogField;
use super::{Damage, quoted};
use crate::record::Record;
use crate::users::Users;

/// A compiled format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The text before the first value.
    start: Box<str>,
    /// The values, each with the text that follows it.
    values: Vec<Value>,
}

/// A value of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    field: LogField,
    /// The variable or the operator, if it stands for a header.
    header: Box<str>,
    /// The text that follows.
    after: Box<str>,
}

/// Why a format string cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The format string has no values at all.
    #[error("the format has no $variable and no %OPERATOR%")]
    NoValues,
    /// Nothing separates two values.
    #[error("nothing separates the values {0} and {1}")]
    NotSeparated(usize, usize),
    /// An operator does not end.
    #[error("the operator {0:?} does not end with a percent sign")]
    Unended(String),
    /// A field that a replay needs is absent.
    #[error("the format does not contain {0}")]
    Untold(&'static str),
}

/// nginx's own format `combined`.
pub(super) const COMBINED: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;

/// Envoy's default format.
pub(super) const ENVOY: &str = r#"[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%""#;

// === impl Template ===

impl Template {
    /// Compiles a format string.
    pub fn parse(format: &str) -> Result<Self, TemplateError> {
        let mut start = String::new();
        let mut values: Vec<(LogField, &str, String)> = Vec::new();
        let mut rest = format;
        while let Some(letter) = rest.chars().next() {
            let (field, after) = match letter {
                '$' => nginx_value(rest),
                '%' => envoy_value(rest)?,
                _ => (None, &rest[letter.len_utf8()..]),
            };
            match field {
                Some((field, name)) => values.push((field, name, String::new())),
                None => {
                    let text = values.last_mut().map_or(&mut start, |(.., text)| text);
                    text.push(letter);
                }
            }
            rest = after;
        }
        let joined = values.iter().rev().skip(1).rposition(|(.., text)| text.is_empty());
        if let Some(place) = joined {
            let first = values.len() - 1 - place;
            return Err(TemplateError::NotSeparated(first, first + 1));
        }
        let template = Self {
            start: start.into(),
            values: (values.into_iter())
                .map(|(field, name, after)| {
                    let header = if field == LogField::Header { name.into() } else { Box::default() };
                    Value { field, header, after: after.into() }
                })
                .collect(),
        };
        template.check()?;
        Ok(template)
    }

    fn check(&self) -> Result<(), TemplateError> {
        let tells = |wanted: &[LogField]| self.values.iter().any(|value| wanted.contains(&value.field));
        if self.values.is_empty() {
            return Err(TemplateError::NoValues);
        }
        if !tells(&[LogField::Start, LogField::End, LogField::EndLocal, LogField::EndUnix]) {
            return Err(TemplateError::Untold("the time of a request"));
        }
        if !tells(&[LogField::RequestLine, LogField::Target]) {
            return Err(TemplateError::Untold("the path of a request"));
        }
        if !tells(&[LogField::RequestLine, LogField::Method]) {
            return Err(TemplateError::Untold("the method of a request"));
        }
        Ok(())
    }

    /// Reads a line that follows the format.
    pub(super) fn read<'a>(&self, line: &'a [u8], users: &mut Users) -> Result<Record<'a>, Damage> {
        let text =
            std::str::from_utf8(line).map_err(|_| Damage::Invalid("the encoding"))?.trim_end_matches(['\r', '\n']);
        let mut rest = text.strip_prefix(&*self.start).ok_or(Damage::Form)?;
        let mut exchange = LoggedExchange::default();
        for (place, Value { field, header, after }) in self.values.iter().enumerate() {
            let is_last = place + 1 == self.values.len();
            let end = match (&**after, is_last) {
                ("", _) => rest.len(),
                (after, true) => {
                    rest.len().checked_sub(after.len()).filter(|_| rest.ends_with(after)).ok_or(Damage::Form)?
                }
                (after, false) => rest.find(after).ok_or(Damage::Form)?,
            };
            let value = &rest[..end];
            if *field != LogField::Other {
                let value = if value.contains('\\') { quoted::unescape(value)?.into() } else { Cow::Borrowed(value) };
                match field {
                    LogField::Header => exchange.set_header(header.to_string().into(), value),
                    _ => exchange.set(*field, value)?,
                }
            }
            rest = &rest[end + after.len()..];
        }
        exchange.into_record(users)
    }

    /// Whether the format includes how long requests take.
    pub fn tells_time_taken(&self) -> bool {
        self.values.iter().any(|value| matches!(value.field, LogField::Seconds | LogField::Milliseconds))
    }
}

/// The meaning of a value, and the name of its variable or operator.
type NamedField<'a> = (LogField, &'a str);

/// A variable at the start of a text, and what follows it.
fn nginx_value(text: &str) -> (Option<NamedField<'_>>, &str) {
    let after = &text[1..];
    if let Some((name, after)) = after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
        return (Some((LogField::of_nginx(name), name)), after);
    }
    let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(after.len());
    let (name, rest) = after.split_at(end);
    if name.is_empty() { (None, rest) } else { (Some((LogField::of_nginx(name), name)), rest) }
}

/// An operator at the start of a text, and what follows it. `%%` stands for a percent sign.
fn envoy_value(text: &str) -> Result<(Option<NamedField<'_>>, &str), TemplateError> {
    let (operator, after) = text[1..].split_once('%').ok_or_else(|| TemplateError::Unended(text.to_owned()))?;
    // A limit that the value is cut to.
    let name = operator.rsplit_once("):").map_or(operator, |(name, _)| &operator[..=name.len()]);
    Ok((if operator.is_empty() { None } else { Some((LogField::of_envoy(name), name)) }, after))
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::User;
    use evenkeel_engine::time::MILLISECOND;

    use super::*;
    use crate::record::Action;
    use crate::timestamp::rfc3339;

    fn record(format: &str, line: &'static str) -> Result<Record<'static>, Damage> {
        Template::parse(format).unwrap().read(line.as_bytes(), &mut Users::default())
    }

    #[test]
    fn combined() {
        let line = r#"192.0.2.7 - alice [16/Nov/2026:10:51:03 +0000] "GET /orders?q=\x22a\x22 HTTP/1.1" 200 512 "-" "curl/8.5.0""#;
        let record = record(COMBINED, line).unwrap();
        assert_eq!(Some(record.arrived), rfc3339("2026-11-16T10:51:03Z"));
        assert_eq!((record.service, record.action), (None, Action::Method("GET".into())));
        assert_eq!(record.target, r#"/orders?q="a""#);
        assert_eq!(*record.user.unwrap(), User::new("alice", ["system:authenticated"]));
        assert!(!Template::parse(COMBINED).unwrap().tells_time_taken());
    }

    #[test]
    fn envoy() {
        let line = r#"[2026-11-16T10:51:03.600Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2" "locations" "tcp://10.0.2.1:80""#;
        let record = record(ENVOY, line).unwrap();
        assert_eq!(Some(record.arrived), rfc3339("2026-11-16T10:51:03.600Z"));
        assert_eq!(record.service, Some(226 * MILLISECOND));
        assert_eq!(record.id.as_deref(), Some("cc21d9b0-cf5c-432b-8c7e-98aeb7988cd2"));
        assert_eq!(*record.user.unwrap(), User::new("system:anonymous", ["system:unauthenticated"]));
        assert!(Template::parse(ENVOY).unwrap().tells_time_taken());
    }

    #[test]
    fn formats_of_ones_own() {
        let format = "${msec}|$request_method|$request_uri|$request_time|$http_x_remote_user|100%%";
        let record = record(format, "1794826263.850|PUT|/a|0.250|bob|100%").unwrap();
        assert_eq!(Some(record.arrived), rfc3339("2026-11-16T10:51:03.600Z"));
        assert_eq!(*record.user.unwrap(), User::new("bob", ["system:authenticated"]));
        let format = "%START_TIME% %REQ(:METHOD)% %REQ(:PATH):40%";
        assert_eq!(self::record(format, "2026-11-16T10:51:03Z GET /a").unwrap().target, "/a");
    }

    #[test]
    fn wrong_formats() {
        for (format, error) in [
            ("hello", "the format has no $variable and no %OPERATOR%"),
            ("$time_local $status$request", "nothing separates the values 2 and 3"),
            ("%START_TIME", "the operator \"%START_TIME\" does not end with a percent sign"),
            ("$request", "the format does not contain the time of a request"),
            ("$msec $request_method", "the format does not contain the path of a request"),
            ("$msec $request_uri", "the format does not contain the method of a request"),
        ] {
            assert_eq!(Template::parse(format).unwrap_err().to_string(), error, "{format}");
        }
    }

    #[test]
    fn other_lines_are_damaged() {
        let format = "<$msec> \"$request\" end";
        for line in ["", "<", "<1.5>", "<1.5> \"GET /\"", "<1.5> \"GET / HTTP/1.1\" ende", "<x> \"GET / HTTP/1.1\" end"]
        {
            assert!(record(format, line).is_err(), "{line}");
        }
        assert!(record(format, "<1.5> \"GET / HTTP/1.1\" end").is_ok());
        assert_eq!(record(format, "<1.5> \"GET\" end"), Err(Damage::Invalid("the request line")));
    }
}
