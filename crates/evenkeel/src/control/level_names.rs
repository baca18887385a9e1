//! `LevelKey` and `LevelNames`: which level a record in memory is about, and the names of levels, including those that are gone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use evenkeel_engine::LevelId;

/// A level. Indexes are used again by later levels, so the lower half is the index, and the upper half says how many levels had it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LevelKey(u32);

/// The names of levels, in bounded memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct LevelNames {
    /// By index, the levels that had it, the youngest last.
    by_index: HashMap<usize, VecDeque<(LevelKey, Arc<str>)>>,
}

/// So many levels with one index are remembered.
const PAST_MAX: usize = 64;

// === impl LevelKey ===

impl LevelKey {
    #[inline]
    pub(crate) fn new(level: LevelId) -> Self {
        let index = u32::try_from(level.index()).unwrap_or(u32::MAX).min(0xFFFF);
        Self(index | level.generation() << 16)
    }

    /// As a part of a record.
    pub(crate) const fn to_bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    fn index(self) -> usize {
        (self.0 & 0xFFFF) as usize
    }
}

// === impl LevelNames ===

impl LevelNames {
    pub(crate) fn add(&mut self, level: LevelKey, name: &str) {
        let levels = self.by_index.entry(level.index()).or_default();
        levels.retain(|(known, _)| *known != level);
        if levels.len() >= PAST_MAX {
            levels.pop_front();
        }
        levels.push_back((level, name.into()));
    }

    /// The name of a level; empty if it is not known.
    pub(crate) fn name(&self, level: LevelKey) -> &str {
        let levels = self.by_index.get(&level.index());
        levels.into_iter().flatten().find(|(known, _)| *known == level).map_or("", |(_, name)| &**name)
    }
}
