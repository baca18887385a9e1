//! `Template`: the body of an error response in an operator's own words.

use std::fmt::Write;

use http::HeaderValue;

use super::ErrorFacts;
use crate::config::ResponseTemplate;

/// The body of an error response, with placeholders. It is checked when it is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    content_type: HeaderValue,
    escape: Escape,
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Value(Value),
}

/// The placeholders of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Status,
    Title,
    Message,
    Reason,
    Level,
    RetryAfterSeconds,
}

/// How values are written, so that they are nothing but text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// Within a string of JSON.
    Json,
    /// HTML and XML.
    Markup,
    /// Plain text.
    None,
}

/// The longest template.
const BYTES_MAX: usize = 16 * 1024;
const VALUES: [(&str, Value); 6] = [
    ("status", Value::Status),
    ("title", Value::Title),
    ("message", Value::Message),
    ("reason", Value::Reason),
    ("level", Value::Level),
    ("retryAfterSeconds", Value::RetryAfterSeconds),
];

// === impl Template ===

impl Template {
    /// Reads a template. Errors name the setting below `responses.template`, and what is wrong with it.
    pub(crate) fn new(config: &ResponseTemplate) -> Result<Self, (&'static str, String)> {
        let escape = Escape::of(&config.content_type).ok_or_else(|| {
            let why = format!(
                "{:?} is not a type of text; write `application/json`, `text/html`, `application/xml` or `text/plain`",
                config.content_type
            );
            ("contentType", why)
        })?;
        let content_type = HeaderValue::from_str(&config.content_type)
            .map_err(|_| ("contentType", "is not the value of a header".to_owned()))?;
        if config.body.len() > BYTES_MAX {
            return Err(("body", format!("has {} bytes; at most {BYTES_MAX} are allowed", config.body.len())));
        }
        let parts = parts(&config.body).map_err(|why| ("body", why))?;
        let template = Self { content_type, escape, parts };
        if escape == Escape::Json {
            let sample = ErrorFacts {
                status: http::StatusCode::TOO_MANY_REQUESTS,
                message: "a \"message\"",
                reason: Some("queue-full"),
                level: Some("level"),
                retry_after_seconds: Some(1),
            };
            let fault = serde_json::from_str::<serde_json::Value>(&template.body(&sample)).err();
            if let Some(fault) = fault {
                return Err(("body", format!("is not JSON: {fault}; write texts as `\"{{{{message}}}}\"`, in quotes")));
            }
        }
        Ok(template)
    }

    pub(super) fn content_type(&self) -> HeaderValue {
        self.content_type.clone()
    }

    /// The body for these facts. A number that is absent becomes 0, and a text empty.
    pub(super) fn body(&self, facts: &ErrorFacts<'_>) -> String {
        let mut body = String::new();
        for part in &self.parts {
            let text = match part {
                Part::Text(text) => {
                    body.push_str(text);
                    continue;
                }
                Part::Value(Value::Status) => facts.status.as_str(),
                Part::Value(Value::Title) => facts.title(),
                Part::Value(Value::Message) => facts.message,
                Part::Value(Value::Reason) => facts.reason.unwrap_or_default(),
                Part::Value(Value::Level) => facts.level.unwrap_or_default(),
                Part::Value(Value::RetryAfterSeconds) => {
                    // Writing to a string does not fail.
                    let _ = write!(body, "{}", facts.retry_after_seconds.unwrap_or(0));
                    continue;
                }
            };
            self.escape.put(&mut body, text);
        }
        body
    }
}

/// Takes a template apart at its places.
fn parts(body: &str) -> Result<Vec<Part>, String> {
    let (mut parts, mut rest) = (Vec::new(), body);
    while let Some((text, after)) = rest.split_once("{{") {
        let known = || VALUES.map(|(name, _)| format!("`{{{{{name}}}}}`")).join(", ");
        let Some((name, after)) = after.split_once("}}") else {
            return Err(format!("`{{{{` has no end; the places are {}", known()));
        };
        let Some((_, value)) = VALUES.iter().find(|(known, _)| *known == name.trim()) else {
            return Err(format!("`{{{{{name}}}}}` is unknown; the places are {}", known()));
        };
        parts.extend([Part::Text(text.to_owned()), Part::Value(*value)]);
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

// === impl Escape ===

impl Escape {
    /// How values are written in a body of this type.
    fn of(content_type: &str) -> Option<Self> {
        let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match &*kind {
            kind if kind == "application/json" || kind.ends_with("+json") => Some(Self::Json),
            kind if kind == "text/html" || kind.ends_with("/xml") || kind.ends_with("+xml") => Some(Self::Markup),
            "text/plain" => Some(Self::None),
            _ => None,
        }
    }

    fn put(self, body: &mut String, text: &str) {
        match self {
            Self::None => body.push_str(text),
            Self::Json => {
                let quoted = serde_json::Value::from(text).to_string();
                body.push_str(&quoted[1..quoted.len() - 1]);
            }
            Self::Markup => {
                for character in text.chars() {
                    match character {
                        '<' => body.push_str("&lt;"),
                        '>' => body.push_str("&gt;"),
                        '&' => body.push_str("&amp;"),
                        '"' => body.push_str("&quot;"),
                        '\'' => body.push_str("&#39;"),
                        other => body.push(other),
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use proptest::prelude::*;

    use super::*;

    fn template(content_type: &str, body: &str) -> Result<Template, (&'static str, String)> {
        Template::new(&ResponseTemplate { content_type: content_type.to_owned(), body: body.to_owned() })
    }

    fn facts(message: &str) -> ErrorFacts<'_> {
        ErrorFacts {
            status: StatusCode::TOO_MANY_REQUESTS,
            message,
            reason: Some("queue-full"),
            level: None,
            retry_after_seconds: Some(3),
        }
    }

    #[test]
    fn values_are_escaped_by_the_type() {
        for (content_type, body, expected) in [
            ("text/plain", "{{status}} {{title}}: {{message}}", "429 Too Many Requests: a <b> \"c\""),
            (
                "text/html; charset=utf-8",
                "<p title='{{message}}'>{{level}}</p>",
                "<p title='a &lt;b&gt; &quot;c&quot;'></p>",
            ),
            (
                "application/problem+json",
                r#"{"m": "{{ message }}", "after": {{retryAfterSeconds}}, "why": "{{reason}}"}"#,
                r#"{"m": "a <b> \"c\"", "after": 3, "why": "queue-full"}"#,
            ),
            ("application/xml", "<e>{{message}}</e>", "<e>a &lt;b&gt; &quot;c&quot;</e>"),
        ] {
            assert_eq!(template(content_type, body).unwrap().body(&facts("a <b> \"c\"")), expected);
        }
    }

    #[test]
    fn what_cannot_be_a_template_is_refused_with_a_reason() {
        for (content_type, body, setting, reason) in [
            ("image/png", "", "contentType", "is not a type of text"),
            ("text/html\n", "", "contentType", "is not"),
            ("text/plain", "{{user}}", "body", "`{{user}}` is unknown; the places are `{{status}}`, `{{title}}`"),
            ("text/plain", "{{message", "body", "has no end"),
            ("application/json", r#"{"m": {{message}}}"#, "body", "is not JSON: "),
            ("text/plain", &"x".repeat(BYTES_MAX + 1), "body", "at most 16384 are allowed"),
        ] {
            let (found, why) = template(content_type, body).unwrap_err();
            assert!(found == setting && why.contains(reason), "{found} {why}");
        }
    }

    proptest! {
        #[test]
        fn a_message_stays_a_string_of_json(message in "\\PC*|[\\x00-\\x7f]*") {
            let made = template("application/json", r#"{"message": "{{message}}"}"#).unwrap();
            let read: serde_json::Value = serde_json::from_str(&made.body(&facts(&message))).unwrap();
            prop_assert_eq!(&read["message"], &message);
        }
    }
}
