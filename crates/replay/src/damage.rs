//! Lines that could not be read: how many, and the first of them by name.

use crate::formats::Damage;

/// Lines that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damaged {
    count: u64,
    first: Vec<DamagedLine>,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedLine {
    /// The log.
    pub log: String,
    /// Whether it is a `line` or an `event`.
    pub unit: &'static str,
    /// Its number, from 1 on.
    pub number: u64,
    /// Why.
    pub reason: Damage,
}

/// This many are named.
const NAMED_MAX: usize = 10;

// === impl Damaged ===

impl Damaged {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first of them.
    pub fn first(&self) -> &[DamagedLine] {
        &self.first
    }

    pub(crate) fn note(&mut self, log: &str, unit: &'static str, number: u64, reason: Damage) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            self.first.push(DamagedLine { log: log.to_owned(), unit, number, reason });
        }
    }
}

// === impl DamagedLine ===

impl std::fmt::Display for DamagedLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {} {}: {}", self.log, self.unit, self.number, self.reason)
    }
}
