//! What dumps show of a request, kept apart from it in boxes that are used again, so that it costs no allocation.

use std::cell::RefCell;
use std::ops::Deref;

use crate::control::request::Details;

/// The details of a request. When they are dropped, their box is kept for others that come on the same thread.
///
/// To drop them may run anything, so that no lock may be held then.
#[derive(Debug)]
pub(crate) struct KeptDetails(Option<Box<Option<Details>>>);

/// How many boxes a thread keeps at most.
const SPARE_MAX: usize = 64;

type SpareBoxes = RefCell<Vec<Box<Option<Details>>>>;

thread_local! {
    static SPARE: SpareBoxes = const { RefCell::new(Vec::new()) };
}

// === impl KeptDetails ===

impl KeptDetails {
    #[inline]
    pub(crate) fn new(details: impl FnOnce() -> Details) -> Self {
        let spare = SPARE.try_with(|spare| spare.try_borrow_mut().ok()?.pop()).ok().flatten();
        let mut kept = spare.unwrap_or_default();
        // Made where they stay: they are large.
        kept.get_or_insert_with(details);
        Self(Some(kept))
    }
}

impl Deref for KeptDetails {
    type Target = Option<Details>;

    fn deref(&self) -> &Self::Target {
        self.0.as_deref().unwrap_or(&None)
    }
}

impl Drop for KeptDetails {
    #[inline]
    fn drop(&mut self) {
        let Some(mut kept) = self.0.take() else { return };
        *kept = None;
        let keep = |spare: &SpareBoxes| {
            if let Ok(mut spare) = spare.try_borrow_mut()
                && spare.len() < SPARE_MAX
            {
                spare.push(kept);
            }
        };
        // A thread that is ending keeps nothing.
        let _ = SPARE.try_with(keep);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_engine::User;

    use super::*;

    fn details(user: &Arc<User>) -> Details {
        Details { user: Arc::clone(user), method: http::Method::GET, uri: http::Uri::from_static("/orders") }
    }

    #[test]
    fn boxes_are_used_again_without_what_was_in_them() {
        let user = Arc::new(User::default());
        let address = |kept: &KeptDetails| std::ptr::from_ref::<Option<Details>>(kept).addr();
        let first = KeptDetails::new(|| details(&user));
        assert_eq!((first.as_ref().map(|details| details.uri.path()), Arc::strong_count(&user)), (Some("/orders"), 2));
        let place = address(&first);
        drop(first);
        assert_eq!(Arc::strong_count(&user), 1);
        assert_eq!(address(&KeptDetails::new(|| details(&user))), place);
    }

    #[test]
    fn a_thread_keeps_no_more_boxes_than_it_may() {
        let user = Arc::new(User::default());
        drop((0..3 * SPARE_MAX).map(|_| KeptDetails::new(|| details(&user))).collect::<Vec<_>>());
        assert_eq!(SPARE.with_borrow(Vec::len), SPARE_MAX);
    }
}
