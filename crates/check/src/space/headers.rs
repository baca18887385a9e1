//! Headers as numbers: each combination of values that some schema tells apart (SF-2).

use std::collections::BTreeMap;

use evenkeel_api::annotations::{self, HeaderCondition, HeaderMatch, HeaderValues};
use evenkeel_api::v1::FlowSchema;
use evenkeel_engine::KnownHead;

use super::Set;
use super::names::unused;

/// The headers that schemas ask for. A header is a digit: 0 if it is not there, one more for each value that is listed, and a last one
/// for all other values. A combination is a number of such digits, so that 0 is a request without any of them.
#[derive(Debug)]
pub(crate) struct Headers {
    headers: Vec<Header>,
    /// How many combinations there are; 1 if there are too many to tell apart, and then schemas that ask for headers have no region.
    combinations: u32,
}

#[derive(Debug)]
struct Header {
    name: String,
    /// The listed values, and one that is not listed.
    values: Vec<String>,
}

/// How many combinations are told apart.
const COMBINATIONS_MAX: u64 = 4096;

// === impl Headers ===

impl Headers {
    pub(crate) fn of<'a>(schemas: impl IntoIterator<Item = &'a FlowSchema>) -> Self {
        let mut listed: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        for schema in schemas {
            let Some(HeaderCondition::Headers(asked)) = condition(schema) else { continue };
            for (name, values) in asked.iter() {
                let (_, known) =
                    listed.entry(name.to_ascii_lowercase()).or_insert_with(|| (name.to_owned(), Vec::new()));
                if let HeaderValues::Listed(values) = values {
                    let new: Vec<String> = values.iter().filter(|value| !known.contains(value)).cloned().collect();
                    known.extend(new);
                }
            }
        }
        let header = |(name, mut values): (String, Vec<String>)| {
            values.push(unused("another-value", |text| values.iter().any(|value| value == text)));
            Header { name, values }
        };
        let headers: Vec<Header> = listed.into_values().map(header).collect();
        let combinations = headers.iter().fold(1_u64, |all, header| all.saturating_mul(header.digits().into()));
        let combinations = if combinations > COMBINATIONS_MAX { 1 } else { u32::try_from(combinations).unwrap_or(1) };
        Self { headers, combinations }
    }

    /// All combinations.
    pub(crate) fn all(&self) -> Set {
        Set::interval(0, self.combinations)
    }

    /// Whether the region of a schema says what the schema matches.
    pub(crate) fn tells(&self, schema: &FlowSchema) -> bool {
        self.combinations > 1 || condition(schema).is_none_or(|asked| asked == HeaderCondition::NotUnderstood)
    }

    /// The combinations that a schema lets through.
    pub(crate) fn asked_by(&self, schema: &FlowSchema) -> Set {
        match condition(schema) {
            None => self.all(),
            Some(HeaderCondition::NotUnderstood) => Set::default(),
            Some(HeaderCondition::Headers(_)) if self.combinations == 1 => Set::default(),
            Some(HeaderCondition::Headers(asked)) => {
                let fitting = (0..self.combinations).filter(|number| self.fits(*number, &asked));
                Set::union_of(fitting.map(|number| (number, number + 1)))
            }
        }
    }

    fn fits(&self, number: u32, asked: &HeaderMatch) -> bool {
        self.digits_of(number).all(|(header, digit)| {
            let mut asked = asked.iter().filter(|(name, _)| name.eq_ignore_ascii_case(&header.name));
            match (asked.next(), header.value(digit)) {
                (None, _) | (Some((_, HeaderValues::Any)), Some(_)) => true,
                (Some(_), None) => false,
                (Some((_, HeaderValues::Listed(listed))), Some(value)) => listed.iter().any(|listed| listed == value),
            }
        })
    }

    /// The digits of a combination. If there are too many to tell apart, all headers are absent.
    fn digits_of(&self, mut number: u32) -> impl Iterator<Item = (&Header, u32)> {
        self.headers.iter().map(move |header| {
            let digit = number % header.digits();
            number /= header.digits();
            (header, digit)
        })
    }

    /// The headers of a request with that combination.
    pub(crate) fn head(&self, number: u32) -> KnownHead {
        let given = self.digits_of(number).filter_map(|(header, digit)| Some((header, header.value(digit)?)));
        given.fold(KnownHead::default(), |head, (header, value)| head.header(header.name.as_str(), value))
    }

    /// Describes what some combinations have in common, for people; empty if they have nothing in common.
    pub(crate) fn describe(&self, set: &Set) -> String {
        if *set == self.all() {
            return String::new();
        }
        let Some(first) = set.first() else { return String::new() };
        let given: Vec<String> =
            self.head(first).headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        if given.is_empty() { "; headers: others".to_owned() } else { format!("; headers: {}", given.join(", ")) }
    }
}

fn condition(schema: &FlowSchema) -> Option<HeaderCondition> {
    annotations::match_headers(&schema.metadata.annotations)
}

// === impl Header ===

impl Header {
    fn digits(&self) -> u32 {
        u32::try_from(self.values.len()).unwrap_or(u32::MAX - 1) + 1
    }

    /// The value of a digit; `None` if the header is not there.
    fn value(&self, digit: u32) -> Option<&str> {
        let index = usize::try_from(digit.checked_sub(1)?).ok()?;
        self.values.get(index).map(String::as_str)
    }
}
