//! Which clauses cover a path (FM-13).

use evenkeel_api::annotations::PathMatch;

use super::clause_set::ClauseSet;
use super::listed::set_at;
use super::segments::{ROOT, Segments, cut};
use super::some_sets::SomeSets;

/// The entry that covers every path, wherever it stands in a list.
const EVERY: &str = "*";

/// Which clauses cover which paths.
#[derive(Debug, Default)]
pub(super) struct Paths {
    segments: Segments,
    /// For each node, the clauses that cover the path that ends there.
    exact: Vec<ClauseSet>,
    /// For each node, the clauses that cover every path that goes on from there after a `/`.
    below: Vec<ClauseSet>,
    every: ClauseSet,
}

// === impl Paths ===

impl Paths {
    /// Takes in the entries of a clause.
    pub(super) fn add(&mut self, entries: &[String], matching: PathMatch, clause: usize) {
        for entry in entries {
            if entry == EVERY {
                self.every.push(clause);
                continue;
            }
            let node = self.segments.add(entry);
            if let Some(set) = set_at(&mut self.exact, node) {
                set.push(clause);
            }
            if matching == PathMatch::Exact && !entry.ends_with('*') {
                continue;
            }
            let prefix = entry.strip_suffix('*').unwrap_or(entry);
            // The prefix ends in one `/`, its own or an appended one, which is the one that `below` stands for.
            let node = self.segments.add(prefix.strip_suffix('/').unwrap_or(prefix));
            if let Some(set) = set_at(&mut self.below, node) {
                set.push(clause);
            }
        }
    }

    /// Hands on the sets of the clauses that cover a path, a few at a time.
    #[inline]
    pub(super) fn covering<'a>(&'a self, path: &str, each: impl FnMut(&[&'a ClauseSet])) {
        let mut sets = SomeSets::new(each);
        sets.push(Some(&self.every));
        let (mut node, mut rest) = (ROOT, path);
        loop {
            let (segment, below) = cut(rest);
            let Some(child) = self.segments.child(node, segment) else { break };
            match below {
                Some(below) => {
                    sets.push(self.below.get(child));
                    (node, rest) = (child, below);
                }
                None => {
                    sets.push(self.exact.get(child));
                    break;
                }
            }
        }
        sets.finish();
    }
}
