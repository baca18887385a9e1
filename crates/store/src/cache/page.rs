//! A page of a list, of the present state or of an older one.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::Object;

use super::objects::ObjectMap;

/// The changes to undo to get from a snapshot to an older state: each changed object as it was, or `None` where there was none.
pub(crate) type Undo = BTreeMap<Box<str>, Option<Arc<Object>>>;

/// Up to `limit` objects (all for zero) whose names come after `after`, and how many come after these.
pub(crate) fn page(objects: &ObjectMap, undo: &Undo, after: Option<&str>, limit: usize) -> (Vec<Arc<Object>>, usize) {
    if undo.is_empty() && after.is_none() && limit == 0 {
        return (objects.after(None).cloned().collect(), 0);
    }
    let start = after.map_or(Bound::Unbounded, Bound::Excluded);
    let unchanged = objects.after(after).filter(|object| !undo.contains_key(&object.name));
    let undone = undo.range::<str, _>((start, Bound::Unbounded)).filter_map(|(_, object)| object.as_ref());
    let mut merged = Merge { left: unchanged.peekable(), right: undone.peekable() };
    let wanted = if limit == 0 { usize::MAX } else { limit };
    let items: Vec<_> = merged.by_ref().take(wanted).cloned().collect();
    (items, merged.count())
}

/// Merges two sorted sequences into one.
struct Merge<L: Iterator, R: Iterator> {
    left: std::iter::Peekable<L>,
    right: std::iter::Peekable<R>,
}

// === impl Merge ===

impl<'a, L, R> Iterator for Merge<L, R>
where
    L: Iterator<Item = &'a Arc<Object>>,
    R: Iterator<Item = &'a Arc<Object>>,
{
    type Item = &'a Arc<Object>;

    fn next(&mut self) -> Option<Self::Item> {
        match (self.left.peek(), self.right.peek()) {
            (Some(left), Some(right)) if right.name < left.name => self.right.next(),
            (Some(_), _) => self.left.next(),
            (None, _) => self.right.next(),
        }
    }
}
