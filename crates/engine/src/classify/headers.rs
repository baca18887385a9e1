//! Which clauses ask for which headers (SF-2).

use std::collections::BTreeSet;

use evenkeel_api::annotations::{HeaderMatch, HeaderValues};

use super::clause_set::{BitmapPlace, ClauseSet, EMPTY};
use super::listed::Listed;
use crate::RequestHead;

/// The headers that clauses ask for. There are none in most configurations, and then nothing is looked at.
#[derive(Debug, Default)]
pub(super) struct Headers(Vec<Header>);

/// One header, and which clauses let which of its values through.
#[derive(Debug)]
struct Header {
    name: Box<str>,
    /// Clauses that do not ask for it.
    unasked: ClauseSet,
    /// Clauses that let every value through.
    any: ClauseSet,
    values: Listed,
}

// === impl Headers ===

impl Headers {
    /// For clauses that ask for some of these headers. Clauses are added afterwards.
    pub(super) fn new<'a>(asked: impl IntoIterator<Item = &'a HeaderMatch>) -> Self {
        let names = asked.into_iter().flat_map(HeaderMatch::iter).map(|(name, _)| name.to_ascii_lowercase());
        let names: BTreeSet<String> = names.collect();
        let header = |name: String| Header {
            name: name.into(),
            unasked: ClauseSet::default(),
            any: ClauseSet::default(),
            values: Listed::default(),
        };
        Self(names.into_iter().map(header).collect())
    }

    /// The names of the headers, in lower case.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|header| &*header.name)
    }

    /// Adds the header that a clause asks for, if it asks for one.
    pub(super) fn add(&mut self, asked: Option<&HeaderMatch>, clause: usize) {
        for header in &mut self.0 {
            let mut asked = asked.into_iter().flat_map(HeaderMatch::iter);
            match asked.find(|(name, _)| name.eq_ignore_ascii_case(&header.name)).map(|(_, values)| values) {
                None => header.unasked.push(clause),
                Some(HeaderValues::Any) => header.any.push(clause),
                Some(HeaderValues::Listed(values)) => {
                    for value in values {
                        header.values.add_one(value, clause);
                    }
                }
            }
        }
    }

    /// The bits at a place that let the headers of a request through. A header is looked up only if some clause that is
    /// still possible asks for it.
    #[inline]
    pub(super) fn narrow(&self, place: BitmapPlace, bits: u64, head: &RequestHead<'_>) -> u64 {
        self.0.iter().fold(bits, |bits, header| header.narrow(place, bits, head))
    }
}

// === impl Header ===

impl Header {
    fn narrow(&self, place: BitmapPlace, bits: u64, head: &RequestHead<'_>) -> u64 {
        let unasked = bits & self.unasked.at(place);
        if unasked == bits {
            return bits;
        }
        match head.header(&self.name) {
            Some(value) => {
                let listed = self.values.by_name(value).unwrap_or(&EMPTY);
                unasked | bits & (self.any.at(place) | listed.at(place))
            }
            None => unasked,
        }
    }
}
