//! `Truth`: the decisions of a server about each request, and whether ours are the same.

use std::collections::HashMap;

use crate::damage::Damaged;
use crate::input::Input;
use crate::join::RequestKey;
use crate::record::{Placed, Record};
use crate::users::Users;

/// The flow schema and the level of each request, by its id.
#[derive(Debug, Default)]
pub struct Truth {
    /// In the order of the keys, once all are read.
    decisions: Vec<(RequestKey, u16, u16)>,
    names: Vec<Box<str>>,
    numbers: HashMap<Box<str>, u16>,
    damaged: Damaged,
}

/// How our classification compares with the server's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// How many requests were compared.
    pub compared: u64,
    /// How many of them we classify as the server did.
    pub agree: u64,
    /// The first of those that we classify otherwise.
    pub differ: Vec<Difference>,
}

/// A request that we classify otherwise than the server did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Who sent it.
    pub user: String,
    /// Its verb or method.
    pub verb: String,
    /// Its path and query.
    pub target: String,
    /// Where we put it.
    pub ours: Placed<'static>,
    /// Where the server put it.
    pub theirs: Placed<'static>,
}

const PROGRESS_EVERY: u64 = 8192;

/// So many differences are kept.
const DIFFERENCES_MAX: usize = 100;

// === impl Truth ===

impl Truth {
    /// Reads the decisions of a log that has them. `progress` is called now and then with the number of lines.
    pub fn read(input: &mut Input, mut progress: impl FnMut(u64, &Input)) -> Self {
        let mut truth = Self::default();
        let format = input.format().clone();
        let (name, unit) = (input.name().to_owned(), input.unit());
        let mut users = Users::default();
        let mut lines: u64 = 0;
        while let Some(part) = input.next_part() {
            lines += 1;
            match part.text.and_then(|text| format.read(text, &mut users)) {
                Ok(record) => truth.take(record),
                Err(damage) => truth.damaged.note(&name, unit, part.number, damage),
            }
            if lines.is_multiple_of(PROGRESS_EVERY) {
                progress(lines, input);
            }
        }
        truth.decisions.sort_unstable();
        truth.decisions.shrink_to_fit();
        truth
    }

    /// How many decisions there are.
    pub fn len(&self) -> usize {
        self.decisions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.decisions.is_empty()
    }

    /// The lines that could not be read.
    pub fn damaged(&self) -> &Damaged {
        &self.damaged
    }

    pub(crate) fn find(&self, key: RequestKey) -> Option<Placed<'_>> {
        let place = self.decisions.binary_search_by_key(&key, |(key, _, _)| *key).ok()?;
        let (_, schema, level) = self.decisions[place];
        let name = |number: u16| self.names[usize::from(number)].as_ref().into();
        Some(Placed { schema: name(schema), level: name(level) })
    }

    fn take(&mut self, record: Option<Record<'_>>) {
        let Some((id, placed)) = record.and_then(|record| record.id.zip(record.placed)) else { return };
        if let (Some(schema), Some(level)) = (self.number(&placed.schema), self.number(&placed.level)) {
            self.decisions.push((RequestKey::new(&id), schema, level));
        }
    }

    fn number(&mut self, name: &str) -> Option<u16> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        let number = u16::try_from(self.names.len()).ok()?;
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        Some(number)
    }
}

// === impl Comparison ===

impl Comparison {
    pub(crate) fn add(&mut self, record: &Record<'_>, ours: &Placed<'_>, theirs: &Placed<'_>) {
        self.compared += 1;
        if ours == theirs {
            self.agree += 1;
        } else if self.differ.len() < DIFFERENCES_MAX {
            let owned = |placed: &Placed<'_>| Placed {
                schema: placed.schema.to_string().into(),
                level: placed.level.to_string().into(),
            };
            self.differ.push(Difference {
                id: record.id.as_deref().map(str::to_owned),
                user: record.user.as_ref().map(|user| user.name.to_string()).unwrap_or_default(),
                verb: record.action.name().to_owned(),
                target: record.target.to_string(),
                ours: owned(ours),
                theirs: owned(theirs),
            });
        }
    }
}
