//! `FieldSet`: the fields that somebody owns, as a tree of path elements.

use std::fmt::Write as _;

use super::element::Element;

/// A set of fields: one node of the tree, and all below it.
///
/// A field can be in the set without the fields below it, and the other way round. No node below the root is empty,
/// and children are in the order of `fieldsV1`, so that equal sets are equal values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FieldSet {
    /// Whether the field that this node stands for is in the set.
    pub(crate) itself: bool,
    children: Vec<(Element, FieldSet)>,
}

// === impl FieldSet ===

impl FieldSet {
    /// The set of the field itself and nothing below it.
    pub(crate) fn leaf() -> Self {
        Self { itself: true, children: Vec::new() }
    }

    /// The set of what is below these elements, which come in any order. It takes no more than sorting them, however
    /// many there are.
    pub(crate) fn of_children(mut children: Vec<(Element, FieldSet)>) -> Self {
        children.retain(|(_, child)| !child.is_empty());
        if !children.is_sorted_by(|(one, _), (other, _)| one < other) {
            children.sort_by(|(one, _), (other, _)| one.cmp(other));
            children.dedup_by(|later, earlier| {
                let is_same = later.0 == earlier.0;
                if is_same {
                    earlier.1.unite(std::mem::take(&mut later.1));
                }
                is_same
            });
        }
        Self { itself: false, children }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.itself && self.children.is_empty()
    }

    pub(crate) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = (&Element, &FieldSet)> {
        self.children.iter().map(|(element, child)| (element, child))
    }

    /// The part of the set below that element.
    pub(crate) fn child(&self, element: &Element) -> Option<&FieldSet> {
        let index = self.children.binary_search_by(|(own, _)| own.cmp(element)).ok()?;
        Some(&self.children[index].1)
    }

    /// Adds what `set` holds below an element that comes after all others.
    pub(crate) fn push(&mut self, element: Element, set: FieldSet) {
        debug_assert!(self.children.last().is_none_or(|(last, _)| *last < element), "{element} is out of order");
        if !set.is_empty() {
            self.children.push((element, set));
        }
    }

    /// Adds everything that is in `other`.
    pub(crate) fn unite(&mut self, mut other: FieldSet) {
        self.itself |= other.itself;
        if !other.children.is_empty() {
            let mut children = std::mem::take(&mut self.children);
            children.append(&mut other.children);
            self.children = Self::of_children(children).children;
        }
    }

    /// Takes out everything that is in `other`.
    pub(crate) fn subtract(&mut self, other: &FieldSet) {
        self.itself &= !other.itself;
        if other.children.is_empty() {
            return;
        }
        self.children.retain_mut(|(element, child)| {
            if let Some(other) = other.child(element) {
                child.subtract(other);
            }
            !child.is_empty()
        });
    }

    /// The fields that are in both sets.
    pub(crate) fn intersection(&self, other: &FieldSet) -> FieldSet {
        let mut both = FieldSet { itself: self.itself && other.itself, children: Vec::new() };
        for (element, child) in &self.children {
            if let Some(other) = other.child(element) {
                both.push(element.clone(), child.intersection(other));
            }
        }
        both
    }

    /// Takes out the member of that name with everything below it.
    pub(crate) fn remove_field(&mut self, name: &str) {
        if let Ok(index) = self.children.binary_search_by(|(own, _)| own.cmp_field(name)) {
            self.children.remove(index);
        }
    }

    /// The paths of all fields in the set, as messages write them: those of one level before those below it.
    pub(crate) fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths(&mut String::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, path: &mut String, paths: &mut Vec<String>) {
        let length = path.len();
        for (element, child) in &self.children {
            if child.itself {
                paths.push(format!("{path}{element}"));
            }
        }
        for (element, child) in &self.children {
            if child.has_children() {
                // Writing to a text cannot fail.
                let _ = write!(path, "{element}");
                child.collect_paths(path, paths);
                path.truncate(length);
            }
        }
    }
}
