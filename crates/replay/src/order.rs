//! Puts requests in the order of their arrival. Logs have them in the order in which they ended.

use std::collections::BTreeMap;
use std::vec;

use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

/// Requests that wait for those that arrived before them and ended after them.
///
/// They are kept in short spans of time, each of which is sorted when it is over: that moves less memory than a heap does.
#[derive(Debug)]
pub(crate) struct Order<T> {
    spans: BTreeMap<i64, Vec<(Nanos, T)>>,
    held: usize,
    ready: vec::IntoIter<(Nanos, T)>,
    /// The latest time at which a line was written.
    written: Nanos,
    /// The end of the spans that have been released.
    released: Nanos,
    late: u64,
}

const SPAN: Nanos = 250 * MILLISECOND;

/// How long a request is held back. A kube-apiserver ends requests after a minute.
const HOLD: Nanos = 90 * SECOND;

/// How many requests are held back at most.
const HELD_MAX: usize = 1 << 19;

// === impl Order ===

impl<T> Order<T> {
    pub(crate) fn new() -> Self {
        Self {
            spans: BTreeMap::new(),
            held: 0,
            ready: Vec::new().into_iter(),
            written: Nanos::MIN,
            released: Nanos::MIN,
            late: 0,
        }
    }

    /// Takes a request that arrived at a time and was written down at another.
    pub(crate) fn push(&mut self, at: Nanos, written: Nanos, request: T) {
        self.written = self.written.max(written);
        if at < self.released {
            self.late += 1;
        }
        let at = at.max(self.released);
        self.spans.entry(at.div_euclid(SPAN)).or_default().push((at, request));
        self.held += 1;
    }

    /// The next request, once no earlier one can follow.
    pub(crate) fn pop(&mut self) -> Option<(Nanos, T)> {
        self.ready.next().or_else(|| {
            let (&first, _) = self.spans.first_key_value()?;
            let is_over = end_of(first) <= self.written.saturating_sub(HOLD);
            if is_over || self.held > HELD_MAX { self.release() } else { None }
        })
    }

    /// The next request, when the log has ended.
    pub(crate) fn pop_any(&mut self) -> Option<(Nanos, T)> {
        self.ready.next().or_else(|| self.release())
    }

    /// How many requests came too late to be put in their place.
    pub(crate) fn late(&self) -> u64 {
        self.late
    }

    /// Starts another piece of a log, whose times are not related to those before. All requests must have been released.
    pub(crate) fn restart(&mut self) {
        (self.written, self.released) = (Nanos::MIN, Nanos::MIN);
    }

    fn release(&mut self) -> Option<(Nanos, T)> {
        let (span, mut requests) = self.spans.pop_first()?;
        requests.sort_by_key(|(at, _)| *at);
        self.held -= requests.len();
        self.released = end_of(span);
        self.ready = requests.into_iter();
        self.ready.next()
    }
}

fn end_of(span: i64) -> Nanos {
    span.saturating_add(1).saturating_mul(SPAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_out_as_they_arrived() {
        let mut order = Order::new();
        for (at, written, name) in [(5, 6, "second"), (1, 8, "first"), (7, 8, "third"), (7, 9, "fourth")] {
            order.push(at * SECOND, written * SECOND, name);
        }
        assert!(order.pop().is_none(), "an earlier one may follow");
        order.push(100 * SECOND, 101 * SECOND, "last");
        let mut names: Vec<_> = std::iter::from_fn(|| order.pop()).map(|(_, name)| name).collect();
        assert_eq!(names, ["first", "second", "third", "fourth"]);
        order.push(6 * SECOND, 102 * SECOND, "late");
        names = std::iter::from_fn(|| order.pop_any()).map(|(_, name)| name).collect();
        assert_eq!((names, order.late()), (vec!["late", "last"], 1));
    }

    #[test]
    fn requests_of_a_span_are_sorted_and_ties_stay_in_order() {
        let mut order = Order::new();
        for (at, name) in [(3, "c"), (1, "a"), (3, "d"), (2, "b")] {
            order.push(at, at, name);
        }
        let all: Vec<_> = std::iter::from_fn(|| order.pop_any()).collect();
        assert_eq!(all, [(1, "a"), (2, "b"), (3, "c"), (3, "d")]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut order = Order::new();
        for number in 0..=HELD_MAX {
            order.push(0, 0, number);
        }
        assert_eq!(order.pop(), Some((0, 0)));
        assert_eq!(order.held, 0);
    }
}
