//! The templates of a table as a tree, one level for each segment.

use std::collections::HashMap;

use super::Segments;
use super::compiled::decoded;
use super::template::Piece;

/// A node of the tree: what may follow the segments that led here. Routes are known by their index.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    literals: HashMap<Box<str>, Tree>,
    any: Option<Box<Tree>>,
    /// The routes that end here.
    here: Vec<usize>,
    /// The routes that take all segments from here on.
    rest: Vec<usize>,
}

// === impl Tree ===

impl Tree {
    /// The routes whose templates have the same shape as these pieces.
    pub(super) fn leaf(&mut self, pieces: &[Piece]) -> &mut Vec<usize> {
        match pieces {
            [] => &mut self.here,
            [Piece::Rest(_), ..] => &mut self.rest,
            [Piece::Literal(text), after @ ..] => self.literals.entry(text.clone()).or_default().leaf(after),
            [Piece::Any(_), after @ ..] => self.any.get_or_insert_default().leaf(after),
        }
    }

    /// What `choose` takes of the most specific leaf that it takes anything of.
    ///
    /// A node is visited at most once, and only if the segments so far have led to it.
    pub(super) fn find<'r, R>(
        &'r self,
        segments: Segments<'_>,
        choose: &impl Fn(&'r [usize]) -> Option<R>,
    ) -> Option<R> {
        let Some(segment) = segments.first() else { return choose(&self.here) };
        let mut after = segments;
        after.take();
        let literal = || self.literals.get(&*decoded(segment))?.find(after, choose);
        let any = || self.any.as_ref().filter(|_| !segment.is_empty())?.find(after, choose);
        literal().or_else(any).or_else(|| choose(&self.rest))
    }
}
