//! The latest writes, within limits: what watchers read from, and what older states are worked out from.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::{Error, Event};

/// How much of the history is kept. Whichever limit is reached first counts.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// The number of writes that are kept.
    pub events: usize,
    /// The bytes of objects that are kept as they were before the writes.
    pub bytes: usize,
}

/// The writes from `oldest` on, each with its place in the sequence of all that were ever pushed.
#[derive(Debug)]
pub(crate) struct History {
    events: VecDeque<Arc<Event>>,
    /// The place of the first event that is kept.
    first_place: u64,
    /// All writes after this revision are kept.
    oldest: u64,
    /// Between the two revisions of a gap, only the differences are known, not the states: no watch can start there, and no
    /// list can show a revision in between. The two revisions themselves are known.
    gaps: VecDeque<(u64, u64)>,
    bytes: usize,
    limits: HistoryLimits,
}

// === impl HistoryLimits ===

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { events: 10_000, bytes: 64 * 1024 * 1024 }
    }
}

// === impl History ===

impl History {
    pub(crate) fn new(oldest: u64, limits: HistoryLimits) -> Self {
        Self { events: VecDeque::new(), first_place: 0, oldest, gaps: VecDeque::new(), bytes: 0, limits }
    }

    pub(crate) fn oldest(&self) -> u64 {
        self.oldest
    }

    pub(crate) fn push(&mut self, event: Arc<Event>) {
        self.bytes += weight(&event);
        self.events.push_back(event);
        while self.events.len() > self.limits.events || self.bytes > self.limits.bytes {
            self.drop_first();
        }
    }

    /// Notes a gap: of the writes between two revisions, only the resulting differences are known.
    pub(crate) fn push_gap(&mut self, from: u64, to: u64) {
        self.gaps.push_back((from, to));
        // More gaps than events could only come from a store that is never reached twice in a row.
        if self.gaps.len() > self.limits.events {
            let (_, end) = self.gaps[0];
            self.forget(end);
        }
    }

    /// Forgets all writes up to a revision.
    pub(crate) fn forget(&mut self, revision: u64) {
        while self.events.front().is_some_and(|event| event.revision <= revision) {
            self.drop_first();
        }
        self.raise_oldest(revision);
    }

    /// Forgets everything and goes on from a revision, which may be an earlier one. All watchers are too old then.
    pub(crate) fn restart(&mut self, revision: u64) {
        self.first_place += self.events.len() as u64 + 1;
        self.events.clear();
        self.gaps.clear();
        self.bytes = 0;
        self.oldest = revision;
    }

    /// Fails if the state at this revision is unknown.
    pub(crate) fn check(&self, asked: u64) -> Result<(), Error> {
        if asked < self.oldest {
            return Err(Error::TooOld { asked, oldest: self.oldest });
        }
        match self.gaps.iter().find(|(from, to)| (from + 1..*to).contains(&asked)) {
            Some(&(_, oldest)) => Err(Error::TooOld { asked, oldest }),
            None => Ok(()),
        }
    }

    /// The writes after a revision, the last first.
    pub(crate) fn newest_first(&self, after: u64) -> impl Iterator<Item = &Arc<Event>> {
        self.events.iter().rev().take_while(move |event| event.revision > after)
    }

    /// The place of the first write after a revision.
    pub(crate) fn place_after(&self, revision: u64) -> u64 {
        self.first_place + self.events.partition_point(|event| event.revision <= revision) as u64
    }

    /// The writes from a place on; `None` if some of them are forgotten.
    pub(crate) fn starting_at(&self, place: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        let skipped = usize::try_from(place.checked_sub(self.first_place)?).ok()?;
        Some(self.events.range(skipped.min(self.events.len())..))
    }

    fn drop_first(&mut self) {
        if let Some(event) = self.events.pop_front() {
            self.first_place += 1;
            self.bytes -= weight(&event);
            self.raise_oldest(event.revision);
        }
    }

    fn raise_oldest(&mut self, revision: u64) {
        self.oldest = self.oldest.max(revision);
        while self.gaps.front().is_some_and(|(_, to)| *to <= self.oldest) {
            self.gaps.pop_front();
        }
    }
}

/// The memory that an event holds: about its own, and the previous object, which nothing else keeps.
fn weight(event: &Event) -> usize {
    const EVENT_BYTES: usize = 256;
    EVENT_BYTES + event.previous().map_or(0, |previous| previous.payload.len())
}
