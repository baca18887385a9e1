//! The options of a list or a watch, as the query gives them (DG-17 to DG-19, WE-7).

use std::borrow::Cow;

use super::{FieldSelector, LabelSelector, Query};

/// The options that decisions depend on. Selectors are kept as text; texts that are not given are empty.
///
/// ```
/// use evenkeel_engine::digest::{ListOptions, Query};
///
/// let options = ListOptions::decode(Query::new("limit=500&watch=&fieldSelector=spec.nodeName%3Dn1")).unwrap();
/// assert_eq!(options.limit, 500);
/// assert!(options.watch, "only `0` and `false` say no");
/// assert_eq!(options.exact_field("spec.nodeName").as_deref(), Some("n1"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ListOptions<'a> {
    /// Whether this is a watch.
    pub watch: bool,
    /// How many objects are asked for; all of them if not positive.
    pub limit: i64,
    /// Whether a watch is to begin with the objects that exist.
    pub send_initial_events: Option<bool>,
    /// The version asked for.
    pub resource_version: Cow<'a, str>,
    /// How the version is to be understood.
    pub resource_version_match: Cow<'a, str>,
    /// Where an earlier list stopped.
    pub continue_token: Cow<'a, str>,
    /// The label selector, not parsed.
    pub label_selector: Cow<'a, str>,
    /// The field selector, not parsed.
    pub field_selector: Cow<'a, str>,
}

/// `limit` or `timeoutSeconds` is not an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("limit and timeoutSeconds must be integers")]
pub struct NotAnInteger;

// === impl ListOptions ===

impl<'a> ListOptions<'a> {
    /// Reads the options of a query in one pass.
    pub fn decode(query: Query<'a>) -> Result<Self, NotAnInteger> {
        let (mut watch, mut limit, mut timeout_seconds, mut send_initial_events) = (None, None, None, None);
        let (mut version, mut version_match, mut token, mut labels, mut fields) = (None, None, None, None, None);
        for (name, value) in query.pairs() {
            let first = match &*name {
                "watch" => &mut watch,
                "limit" => &mut limit,
                "timeoutSeconds" => &mut timeout_seconds,
                "sendInitialEvents" => &mut send_initial_events,
                "resourceVersion" => &mut version,
                "resourceVersionMatch" => &mut version_match,
                "continue" => &mut token,
                "labelSelector" => &mut labels,
                "fieldSelector" => &mut fields,
                _ => continue,
            };
            first.get_or_insert(value);
        }
        // No decision depends on how long the client waits, but a value that is no number counts (DG-18).
        integer(timeout_seconds.as_deref())?;
        Ok(Self {
            watch: watch.is_some_and(|value| is_true(&value)),
            limit: integer(limit.as_deref())?,
            send_initial_events: send_initial_events.map(|value| is_true(&value)),
            resource_version: version.unwrap_or_default(),
            resource_version_match: version_match.unwrap_or_default(),
            continue_token: token.unwrap_or_default(),
            label_selector: labels.unwrap_or_default(),
            field_selector: fields.unwrap_or_default(),
        })
    }

    /// The value that the field selector asks of a field, unless one of the selectors is malformed (DG-18, DG-20).
    pub fn exact_field(&self, key: &str) -> Option<Cow<'a, str>> {
        if self.field_selector.is_empty() || !LabelSelector::is_valid(&self.label_selector) {
            return None;
        }
        match &self.field_selector {
            Cow::Borrowed(text) => FieldSelector::well_formed(text)?.exact_value(key),
            Cow::Owned(text) => {
                FieldSelector::well_formed(text)?.exact_value(key).map(|value| value.into_owned().into())
            }
        }
    }
}

/// A boolean of a query (DG-19).
pub(super) fn is_true(value: &str) -> bool {
    value != "0" && !value.eq_ignore_ascii_case("false")
}

/// A number of a query; 0 if it is not given.
fn integer(value: Option<&str>) -> Result<i64, NotAnInteger> {
    value.map_or(Ok(0), |value| value.parse().map_err(|_| NotAnInteger))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(text: &str) -> Result<ListOptions<'_>, NotAnInteger> {
        ListOptions::decode(Query::new(text))
    }

    #[test]
    fn dg_18_numbers_are_signed_64_bit_integers() {
        for (text, limit) in [("", 0), ("limit=5", 5), ("limit=%2B5", 5), ("limit=-5", -5), ("limit=7&limit=x", 7)] {
            assert_eq!(decode(text).unwrap().limit, limit, "{text}");
        }
        for text in ["limit=", "limit", "limit=x", "limit=1_0", "limit=+5", "limit=9223372036854775808", "limit=0x1"] {
            assert_eq!(decode(text), Err(NotAnInteger), "{text}");
            assert_eq!(decode(&text.replace("limit", "timeoutSeconds")), Err(NotAnInteger), "{text}");
        }
    }

    #[test]
    fn dg_19_everything_but_0_and_false_is_true() {
        for (text, sent) in [
            ("", None),
            ("sendInitialEvents=0", Some(false)),
            ("sendInitialEvents=fAlSe", Some(false)),
            ("sendInitialEvents=false&sendInitialEvents=true", Some(false)),
            ("sendInitialEvents=", Some(true)),
            ("sendInitialEvents", Some(true)),
            ("sendInitialEvents=00", Some(true)),
            ("sendInitialEvents=no", Some(true)),
        ] {
            assert_eq!(decode(text).unwrap().send_initial_events, sent, "{text}");
        }
    }

    #[test]
    fn dg_17_first_values_count_even_if_empty() {
        let options = decode("resourceVersion=&resourceVersion=1&continue=a&continue=b").unwrap();
        assert_eq!((&*options.resource_version, &*options.continue_token), ("", "a"));
    }

    #[test]
    fn a_malformed_label_selector_hides_the_field_selector() {
        let exact = |text| decode(text).unwrap().exact_field("a");
        assert_eq!(exact("fieldSelector=a=1").as_deref(), Some("1"));
        assert_eq!(exact("fieldSelector=a=1&labelSelector=x").as_deref(), Some("1"));
        assert_eq!(exact("fieldSelector=a=1&labelSelector=!!"), None);
        assert_eq!(exact("fieldSelector=a=1,b"), None);
    }
}
