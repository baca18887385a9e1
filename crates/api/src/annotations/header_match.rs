//! The headers that requests must have to match a flow schema, as the annotation `evenkeel.dev/match-headers` writes them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The headers that a request must have to match a flow schema: all of them, each with one of its values.
///
/// ```
/// use evenkeel_api::annotations::{HeaderMatch, HeaderValues};
///
/// let headers: HeaderMatch = r#"{"X-Plan": ["gold", "silver"], "X-Trace": "*"}"#.parse()?;
/// let all: Vec<_> = headers.iter().collect();
/// assert_eq!(all[1], ("X-Trace", &HeaderValues::Any));
/// assert_eq!(headers.to_string(), r#"{"X-Plan":["gold","silver"],"X-Trace":"*"}"#);
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeaderMatch(BTreeMap<String, HeaderValues>);

/// The values of a header that match.
///
/// Not `#[non_exhaustive]`: code that matches headers has to know every way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeaderValues {
    /// Every value: the header only has to be there, once.
    Any,
    /// One of these, byte for byte.
    Listed(Vec<String>),
}

/// How many headers one schema may ask for.
const HEADERS_MAX: usize = 8;
/// How many values of one header a schema may list.
const VALUES_MAX: usize = 64;
/// How long a value may be.
const VALUE_BYTES_MAX: usize = 256;
/// Stands for every value.
const EVERY: &str = "*";

// === impl HeaderMatch ===

impl HeaderMatch {
    /// Whether no header is asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers, each with the values that match, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &HeaderValues)> {
        self.0.iter().map(|(name, values)| (name.as_str(), values))
    }

    /// Asks for a header too. The error says what is wrong with it.
    pub fn add(&mut self, name: &str, values: HeaderValues) -> Result<(), String> {
        check_name(name)?;
        if let HeaderValues::Listed(listed) = &values {
            check_values(name, listed)?;
        }
        if self.0.keys().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(format!("the header {name} is there twice; list its values: [one, two]"));
        }
        if self.0.len() == HEADERS_MAX {
            return Err(format!("there are more than {HEADERS_MAX} headers; use fewer"));
        }
        self.0.insert(name.to_owned(), values);
        Ok(())
    }
}

impl std::str::FromStr for HeaderMatch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed: Value = serde_json::from_str(text)
            .map_err(|_| "must be an object of JSON such as {\"X-Plan\": \"gold\"}".to_owned())?;
        let Value::Object(members) = parsed else {
            return Err("must be an object of JSON such as {\"X-Plan\": \"gold\"}".to_owned());
        };
        let mut headers = Self::default();
        for (name, value) in &members {
            headers.add(name, HeaderValues::from_json(value)?)?;
        }
        if headers.is_empty() {
            Err("names no header; name one, as {\"X-Plan\": \"gold\"}".to_owned())
        } else {
            Ok(headers)
        }
    }
}

impl std::fmt::Display for HeaderMatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let members = self.0.iter().map(|(name, values)| (name.clone(), values.to_json()));
        write!(f, "{}", Value::Object(members.collect()))
    }
}

// === impl HeaderValues ===

impl HeaderValues {
    /// The values of a text or of some texts, of which `*` alone is every value.
    pub fn of<T: Into<String>>(values: impl IntoIterator<Item = T>) -> Self {
        let listed: Vec<String> = values.into_iter().map(Into::into).collect();
        if matches!(&*listed, [only] if only == EVERY) { Self::Any } else { Self::Listed(listed) }
    }

    fn from_json(value: &Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let values = match value {
            Value::Array(values) => values.iter().map(text).collect::<Option<Vec<_>>>(),
            one => text(one).map(|one| vec![one]),
        };
        values.map(Self::of).ok_or_else(|| "the values of a header must be texts".to_owned())
    }

    fn to_json(&self) -> Value {
        match self {
            Self::Any => EVERY.into(),
            Self::Listed(values) => match &**values {
                [one] => one.as_str().into(),
                several => several.into(),
            },
        }
    }
}

/// The fault of a header's name, and the remedy.
pub fn check_name(name: &str) -> Result<(), String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_token) || name.len() > VALUE_BYTES_MAX {
        return Err(format!("{name:?} is not the name of a header; write one as X-Plan"));
    }
    Ok(())
}

fn check_values(name: &str, values: &[String]) -> Result<(), String> {
    if values.is_empty() {
        return Err(format!("the header {name} has no value; name one, or write \"*\" for every value"));
    }
    if values.len() > VALUES_MAX {
        return Err(format!("the header {name} has more than {VALUES_MAX} values; use fewer"));
    }
    let is_sound = |value: &&String| {
        let is_visible = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        is_visible && !value.is_empty() && value.trim() == value.as_str() && value.len() <= VALUE_BYTES_MAX
    };
    match values.iter().find(|value| !is_sound(value)) {
        Some(value) if value.is_empty() => {
            Err(format!("the header {name} has an empty value; write \"*\" for every value"))
        }
        Some(value) => Err(format!(
            "{value:?} cannot be the value of a header; use at most {VALUE_BYTES_MAX} visible ASCII characters, without spaces \
             around them"
        )),
        None if values.iter().any(|value| value == EVERY) => {
            Err(format!("\"*\" stands for every value of {name}, so it stands alone; remove the others"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sf_2_headers_are_read_and_written() {
        for text in [r#"{"X-Plan":"gold"}"#, r#"{"X-Plan":["gold","silver"],"x-a":"*"}"#, r#"{"A":"a b"}"#] {
            assert_eq!(text.parse::<HeaderMatch>().unwrap().to_string(), text);
        }
        for (text, part) in [
            ("", "must be an object of JSON"),
            ("gold", "must be an object of JSON"),
            ("[]", "must be an object of JSON"),
            ("{}", "names no header"),
            (r#"{"X Plan":"gold"}"#, "is not the name of a header"),
            (r#"{"X-Plan":7}"#, "must be texts"),
            (r#"{"X-Plan":[]}"#, "has no value"),
            (r#"{"X-Plan":""}"#, "has an empty value"),
            (r#"{"X-Plan":" gold"}"#, "cannot be the value"),
            (r#"{"X-Plan":"gölden"}"#, "cannot be the value"),
            (r#"{"X-Plan":["*","gold"]}"#, "stands alone"),
            (r#"{"X-Plan":"gold","x-plan":"silver"}"#, "is there twice"),
        ] {
            let error = text.parse::<HeaderMatch>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
        let many: Vec<String> = (0..9).map(|number| format!("\"x{number}\":\"1\"")).collect();
        assert!(format!("{{{}}}", many.join(",")).parse::<HeaderMatch>().unwrap_err().contains("more than 8"));
    }
}
