//! `RareList`: a list that is nearly always empty, and costs next to nothing then.

/// A list that is nearly always empty. It is one word, and dropping an empty one is one comparison: a request makes and drops
/// several of them.
#[derive(Debug)]
#[expect(clippy::box_collection, reason = "a list of one word")]
pub(crate) struct RareList<T>(Option<Box<Vec<T>>>);

// === impl RareList ===

impl<T> RareList<T> {
    #[cold]
    pub(crate) fn push(&mut self, item: T) {
        self.0.get_or_insert_default().push(item);
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.0.as_mut()?.pop()
    }

    /// Takes out the last item that is of the kind.
    pub(crate) fn take_last(&mut self, is_of_kind: impl FnMut(&T) -> bool) -> Option<T> {
        let items = self.0.as_mut()?;
        let at = items.iter().rposition(is_of_kind)?;
        Some(items.remove(at))
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|items| items.is_empty())
    }

    /// Whether it has no memory of its own.
    #[inline]
    pub(crate) fn is_unused(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.as_deref().map_or(&[][..], Vec::as_slice).iter()
    }

    /// Leaves it empty.
    pub(crate) fn take(&mut self) -> Self {
        Self(self.0.take())
    }
}

impl<T> Default for RareList<T> {
    #[inline]
    fn default() -> Self {
        Self(None)
    }
}

impl<T> Extend<T> for RareList<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> IntoIterator for RareList<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.map(|items| *items).unwrap_or_default().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list() {
        let mut list = RareList::default();
        assert!(list.is_empty() && list.pop().is_none() && list.iter().next().is_none());
        list.extend([10, 20]);
        list.push(3);
        assert_eq!((list.pop(), list.iter().copied().collect::<Vec<_>>()), (Some(3), vec![10, 20]));
        list.extend([7, 30, 9]);
        assert_eq!((list.take_last(|item| *item < 10), list.take_last(|item| *item < 10)), (Some(9), Some(7)));
        assert_eq!((list.take_last(|item| *item < 10), list.pop()), (None, Some(30)));
        let taken = list.take();
        assert!(list.is_empty() && !taken.is_empty());
        assert_eq!(taken.into_iter().collect::<Vec<_>>(), [10, 20]);
        assert_eq!(list.into_iter().count(), 0);
    }

    #[test]
    fn it_is_one_word() {
        assert_eq!(size_of::<RareList<[u64; 8]>>(), size_of::<usize>());
    }
}
