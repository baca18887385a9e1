//! `LevelNames`: the names of levels in records, including levels that are gone.

use std::collections::{HashMap, VecDeque};

use super::records::LevelKey;

/// The names of levels, in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct LevelNames {
    /// By index, the levels that had it, the youngest last.
    by_index: HashMap<usize, VecDeque<(LevelKey, String)>>,
}

/// So many levels with one index are remembered.
const PAST_MAX: usize = 64;

// === impl LevelNames ===

impl LevelNames {
    pub(super) fn add(&mut self, level: LevelKey, name: &str) {
        let levels = self.by_index.entry(level.index()).or_default();
        levels.retain(|(known, _)| *known != level);
        if levels.len() >= PAST_MAX {
            levels.pop_front();
        }
        levels.push_back((level, name.to_owned()));
    }

    /// The name of a level; empty if it is not known.
    pub(super) fn name(&self, level: LevelKey) -> &str {
        let levels = self.by_index.get(&level.index());
        levels.into_iter().flatten().find(|(known, _)| *known == level).map_or("", |(_, name)| name)
    }
}
