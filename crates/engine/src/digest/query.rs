//! The query of a URL: names and values, of which the first of each name counts (DG-17).

use std::borrow::Cow;

use super::percent::decode_query;

/// The text after the question mark.
///
/// ```
/// use evenkeel_engine::digest::Query;
///
/// let query = Query::of_target("/api/v1/pods?limit=%zz&limit=5&limit=6&continue=a+b");
/// assert_eq!(query.first("limit").as_deref(), Some("5"), "a pair that cannot be decoded is as if it were not there");
/// assert_eq!(query.first("continue").as_deref(), Some("a b"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Query<'a>(&'a str);

// === impl Query ===

impl<'a> Query<'a> {
    /// The query of that text, which does not have the question mark.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The query of a request target; empty if there is none.
    pub fn of_target(target: &'a str) -> Self {
        Self(target.split_once('?').map_or("", |(_, query)| query))
    }

    /// The text as it was received.
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// The decoded names and values, in order, without those that are malformed.
    pub fn pairs(self) -> impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)> {
        self.0.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';')).filter_map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decode_query(name).ok()?, decode_query(value).ok()?))
        })
    }

    /// The first value of that name.
    pub fn first(self, name: &str) -> Option<Cow<'a, str>> {
        self.pairs().find(|(found, _)| found == name).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dg_17_malformed_pairs_are_dropped() {
        let pairs = |text| Query::new(text).pairs().map(|(name, value)| format!("{name}:{value}")).collect::<Vec<_>>();
        assert_eq!(pairs("a=1&&b&c=&=d&a=2"), ["a:1", "b:", "c:", ":d", "a:2"]);
        assert_eq!(pairs("a;b=c&d=1;2&%zz=1&e=%z&f=%3B"), ["f:;"], "only a literal semicolon is malformed");
        assert_eq!(pairs("w%61tch=1=2"), ["watch:1=2"]);
        assert!(pairs("").is_empty());
    }
}
