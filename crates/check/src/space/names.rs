//! The values of one attribute of requests, as numbers: those that some rule lists, and one for all others.

use std::collections::HashMap;

use super::Set;

/// Stands for every value, alone in its list (FM-10).
const EVERY: &str = "*";

/// The values that rules list, numbered, and a last number that stands for any other value.
#[derive(Debug, Default)]
pub(crate) struct Names {
    numbers: HashMap<String, u32>,
    listed: Vec<String>,
    /// A value that no rule lists.
    other: String,
    /// Whether `other` is a value that requests usually have. If not, a listed value makes a better example.
    is_other_usual: bool,
}

// === impl Names ===

impl Names {
    /// Takes in the values of a list. A `*` that is alone in its list is none.
    pub(crate) fn add(&mut self, list: &[String]) {
        if !lists_every(list) {
            for name in list {
                self.add_one(name);
            }
        }
    }

    /// Takes in a value.
    pub(crate) fn add_one(&mut self, name: &str) {
        if !self.numbers.contains_key(name) {
            self.numbers.insert(name.to_owned(), self.other_number());
            self.listed.push(name.to_owned());
        }
    }

    /// Chooses the value that stands for all that are not listed: one of the usual ones, or the fallback with a number behind it
    /// if need be.
    pub(crate) fn choose_other(&mut self, usual: &[&str], fallback: &str) {
        let is_free = |name: &&&str| !self.numbers.contains_key(**name);
        (self.other, self.is_other_usual) = match usual.iter().find(is_free) {
            Some(name) => ((*name).to_owned(), true),
            None => (unused(fallback, |name| self.numbers.contains_key(name)), usual.is_empty()),
        };
    }

    /// The numbers of the values of a list.
    pub(crate) fn listed(&self, list: &[String]) -> Set {
        if lists_every(list) {
            return self.all();
        }
        let numbers = list.iter().filter_map(|name| self.numbers.get(name));
        Set::union_of(numbers.map(|number| (*number, number + 1)))
    }

    pub(crate) fn all(&self) -> Set {
        Set::interval(0, self.other_number() + 1)
    }

    /// The value of a number.
    pub(crate) fn name(&self, number: u32) -> &str {
        usize::try_from(number).ok().and_then(|index| self.listed.get(index)).unwrap_or(&self.other)
    }

    /// A number of a set: that of the values which no rule lists if it is there, since the fewest rules match those.
    pub(crate) fn pick(&self, set: &Set) -> Option<u32> {
        let other = self.other_number();
        if self.is_other_usual && set.contains(other) { Some(other) } else { set.first() }
    }

    /// Describes a set for people: `get, list`, or `any but get`.
    pub(crate) fn describe(&self, set: &Set) -> String {
        const LISTED_MAX: usize = 6;
        let (prefix, described) = if set.contains(self.other_number()) {
            ("any but ", self.all().difference(set))
        } else {
            ("", set.clone())
        };
        if described.is_empty() {
            return "any".to_owned();
        }
        let quoted = |number| match self.name(number) {
            "" => "\"\"".to_owned(),
            name => name.to_owned(),
        };
        let mut listed: Vec<String> = described.iter().take(LISTED_MAX + 1).map(quoted).collect();
        if listed.len() > LISTED_MAX {
            listed.truncate(LISTED_MAX);
            listed.push("…".to_owned());
        }
        format!("{prefix}{}", listed.join(", "))
    }

    pub(crate) fn other_number(&self) -> u32 {
        u32::try_from(self.listed.len()).unwrap_or(u32::MAX - 1)
    }
}

/// Whether a list lists every value: its one entry is `*` (FM-10).
pub(crate) fn lists_every(list: &[String]) -> bool {
    matches!(list, [only] if only == EVERY)
}

/// The text, or the text with the first number behind it with which it is not taken.
pub(crate) fn unused(text: &str, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(text) {
        return text.to_owned();
    }
    (2..=u64::MAX).map(|number| format!("{text}-{number}")).find(|text| !is_taken(text)).unwrap_or_default()
}
