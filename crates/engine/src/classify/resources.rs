//! Which clauses list a resource, with its subresource if there is one (FM-11).

use super::clause_set::{ClauseSet, EMPTY};
use super::factor::Factor;
use super::listed::{lists_every, set_at};
use super::segments::{ROOT, Segments};

/// Which clauses list which resources.
#[derive(Debug, Default)]
pub(super) struct Resources {
    segments: Segments,
    by_node: Vec<ClauseSet>,
    every: ClauseSet,
}

// === impl Resources ===

impl Resources {
    /// Takes in what a clause lists.
    pub(super) fn add(&mut self, list: &[String], clause: usize) {
        if lists_every(list) {
            self.every.push(clause);
            return;
        }
        for text in list {
            let node = self.segments.add(text);
            if let Some(set) = set_at(&mut self.by_node, node) {
                set.push(clause);
            }
        }
    }

    /// The clauses that list `resource`, or `resource/subresource` if the subresource is not empty.
    #[inline]
    pub(super) fn factor<'a>(
        &'a self,
        resource: &'a str,
        subresource: &'a str,
    ) -> Factor<'a, impl FnOnce() -> &'a ClauseSet> {
        Factor::new(&self.every, move || self.by_name(resource, subresource).unwrap_or(&EMPTY))
    }

    #[inline]
    fn by_name(&self, resource: &str, subresource: &str) -> Option<&ClauseSet> {
        let mut node = self.segments.descend(ROOT, resource)?;
        if !subresource.is_empty() {
            node = self.segments.descend(node, subresource)?;
        }
        self.by_node.get(node)
    }
}
