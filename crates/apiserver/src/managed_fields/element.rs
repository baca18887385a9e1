//! `Element`: one step of the path to an owned field, as `fieldsV1` writes it (API-135).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use evenkeel_api::validate;
use serde_json::Value;

/// One step of a path. The order is that of the texts in `fieldsV1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Element {
    /// A member of an object, or a key of a map: `f:NAME`.
    Field(Cow<'static, str>),
    /// An element of a list by its place: `i:N`. The server never writes one.
    Index(i64),
    /// A member of a list of objects, by the JSON of its key: `k:{"type":"X"}`.
    Key(Box<str>),
    /// An element of a set, by its JSON: `v:"X"`.
    Value(Box<str>),
}

// === impl Element ===

impl Element {
    /// The element of a set.
    pub(crate) fn value(value: &Value) -> Self {
        Self::Value(value.to_string().into())
    }

    /// The member of a list of objects whose member `name` is this value.
    pub(crate) fn key(name: &str, value: &Value) -> Self {
        Self::Key(format!("{{{}:{value}}}", Value::from(name)).into())
    }

    /// Reads an element; one that means the same is always the same afterwards.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (sort, rest) = text.split_once(':')?;
        let json = || serde_json::from_str::<Value>(rest).ok();
        match sort {
            "f" => Some(Self::Field(rest.to_owned().into())),
            "i" => rest.parse().ok().map(Self::Index),
            "k" => json().filter(Value::is_object).map(|key| Self::Key(key.to_string().into())),
            "v" => json().map(|value| Self::value(&value)),
            _ => None,
        }
    }

    /// The element as `fieldsV1` writes it.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Index(index) => format!("i:{index}"),
            Self::Key(key) => format!("k:{key}"),
            Self::Value(value) => format!("v:{value}"),
        }
    }

    /// Where a member of that name stands in the order.
    pub(super) fn cmp_field(&self, name: &str) -> Ordering {
        match self {
            Self::Field(own) => own.as_ref().cmp(name),
            _ => Ordering::Greater,
        }
    }
}

impl fmt::Display for Element {
    /// The element as messages write it: `.labels`, `[type="A"]`, `[="x"]` (API-129).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Value(value) => write!(f, "[={}]", shown(&serde_json::from_str(value).unwrap_or_default())),
            Self::Key(key) => {
                let members: serde_json::Map<String, Value> = serde_json::from_str(key).unwrap_or_default();
                let members: Vec<_> = members.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(f, "[{}]", members.join(","))
            }
        }
    }
}

/// A key or an element of a set in a message.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => validate::Value::text(text).to_string(),
        other => other.to_string(),
    }
}
