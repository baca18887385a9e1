//! Boxes that are used again: what is kept apart from a request costs no allocation once there are enough of them.

/// Boxes without anything in them. There are as many as were ever in use at the same time.
#[derive(Debug)]
pub(crate) struct SpareBoxes<T>(Vec<Box<Option<T>>>);

// === impl SpareBoxes ===

impl<T> SpareBoxes<T> {
    /// Puts something into a box.
    #[inline]
    #[expect(clippy::unnecessary_box_returns, reason = "the boxes are what this is about")]
    pub(crate) fn fill(&mut self, content: T) -> Box<Option<T>> {
        match self.0.pop() {
            Some(mut spare) => {
                *spare = Some(content);
                spare
            }
            None => Box::new(Some(content)),
        }
    }

    /// Takes out what is in a box, and keeps the box.
    #[inline]
    pub(crate) fn empty(&mut self, mut full: Box<Option<T>>) -> Option<T> {
        let content = full.take();
        self.0.push(full);
        content
    }
}

impl<T> Default for SpareBoxes<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}
