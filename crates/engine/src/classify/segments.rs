//! A tree of texts that are cut at each `/`.
//!
//! It serves two kinds of text. Paths, because every prefix that a non-resource rule can ask for ends in `/` (FM-13), so
//! the rules that cover a path are found on the way down to it. And resources, because a resource and a subresource
//! make up one text (FM-11), which can be looked for piece by piece without being put together.

use super::names::Names;

/// The tree. Its nodes are numbers; the root is [`ROOT`] and stands for no text at all.
#[derive(Debug, Default)]
pub(super) struct Segments(Names);

pub(super) const ROOT: usize = 0;

/// The first segment of a text, and what follows the `/` after it.
#[inline]
pub(super) fn cut(text: &str) -> (&str, Option<&str>) {
    // Segments are so short that a plain loop beats a search that is made for long texts.
    match text.bytes().position(|byte| byte == b'/') {
        Some(end) => (text.get(..end).unwrap_or(text), text.get(end + 1..)),
        None => (text, None),
    }
}

// === impl Segments ===

impl Segments {
    /// The node of a text, which is added if it is new.
    pub(super) fn add(&mut self, text: &str) -> usize {
        text.split('/').fold(ROOT, |node, segment| self.0.add(node, segment) + 1)
    }

    /// The node of one more segment below a node.
    #[inline]
    pub(super) fn child(&self, node: usize, segment: &str) -> Option<usize> {
        Some(self.0.get(node, segment)? + 1)
    }

    /// The node of all segments of a text, one below the other, below a node.
    #[inline]
    pub(super) fn descend(&self, node: usize, text: &str) -> Option<usize> {
        let (segment, rest) = cut(text);
        let node = self.child(node, segment)?;
        match rest {
            None => Some(node),
            Some(rest) => rest.split('/').try_fold(node, |node, segment| self.child(node, segment)),
        }
    }
}
