//! `ReusedBox`: a box whose memory is used again, so that the boxes of a request cost no allocation.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::thread::LocalKey;

/// A value in a box. When it is dropped, the memory is kept for other values of its type on the same thread.
#[derive(Debug)]
pub(crate) struct ReusedBox<T: Reusable>(Option<Box<Option<T>>>);

/// A type that can be in such a box.
pub(crate) trait Reusable: Sized + 'static {
    /// The spare boxes of the thread.
    fn spare() -> &'static LocalKey<SpareBoxes<Self>>;
}

/// Boxes that are not in use.
pub(crate) type SpareBoxes<T> = RefCell<Vec<Box<Option<T>>>>;

/// How many boxes of a kind a thread keeps at most.
const SPARE_MAX: usize = 64;

// === impl ReusedBox ===

impl<T: Reusable> ReusedBox<T> {
    #[inline]
    pub(crate) fn new(value: impl FnOnce() -> T) -> Self {
        let spare = T::spare().try_with(|spare| spare.try_borrow_mut().ok()?.pop()).ok().flatten();
        let mut kept = spare.unwrap_or_default();
        // Made where it stays: it is large.
        kept.get_or_insert_with(value);
        Self(Some(kept))
    }
}

impl<T: Reusable> Deref for ReusedBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self.0.as_deref() {
            Some(Some(value)) => value,
            _ => unreachable!("a box is full until it is dropped"),
        }
    }
}

impl<T: Reusable> DerefMut for ReusedBox<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match self.0.as_deref_mut() {
            Some(Some(value)) => value,
            _ => unreachable!("a box is full until it is dropped"),
        }
    }
}

impl<T: Reusable> Drop for ReusedBox<T> {
    #[inline]
    fn drop(&mut self) {
        let Some(mut kept) = self.0.take() else { return };
        // Dropping the value may run any code. The spare boxes are not borrowed meanwhile.
        *kept = None;
        let keep = |spare: &SpareBoxes<T>| {
            if let Ok(mut spare) = spare.try_borrow_mut()
                && spare.len() < SPARE_MAX
            {
                spare.push(kept);
            }
        };
        // A thread that is ending keeps nothing.
        let _ = T::spare().try_with(keep);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    type Value = Rc<()>;

    thread_local! {
        static SPARE: SpareBoxes<Value> = const { RefCell::new(Vec::new()) };
    }

    impl Reusable for Value {
        fn spare() -> &'static LocalKey<SpareBoxes<Self>> {
            &SPARE
        }
    }

    #[test]
    fn boxes_are_used_again_without_what_was_in_them() {
        let value = Value::default();
        let address = |kept: &ReusedBox<Value>| std::ptr::from_ref::<Value>(kept).addr();
        let first = ReusedBox::new(|| Rc::clone(&value));
        assert_eq!((Rc::ptr_eq(&first, &value), Rc::strong_count(&value)), (true, 2));
        let place = address(&first);
        drop(first);
        assert_eq!(Rc::strong_count(&value), 1);
        assert_eq!(address(&ReusedBox::new(|| Rc::clone(&value))), place);
    }

    #[test]
    fn a_thread_keeps_no_more_boxes_than_it_may() {
        drop((0..3 * SPARE_MAX).map(|_| ReusedBox::new(Value::default)).collect::<Vec<_>>());
        assert_eq!(SPARE.with_borrow(Vec::len), SPARE_MAX);
    }
}
