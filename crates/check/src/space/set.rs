//! Sets of small numbers, as intervals.

/// A set of numbers: intervals in ascending order, each without its end, with gaps between them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Set(Vec<(u32, u32)>);

// === impl Set ===

impl Set {
    /// The numbers from `start` up to, and not including, `end`.
    pub(crate) fn interval(start: u32, end: u32) -> Self {
        if start < end { Self(vec![(start, end)]) } else { Self::default() }
    }

    /// The union of intervals in any order.
    pub(crate) fn union_of(intervals: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut sorted: Vec<_> = intervals.into_iter().filter(|(start, end)| start < end).collect();
        sorted.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
        for (start, end) in sorted {
            match merged.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => merged.push((start, end)),
            }
        }
        Self(merged)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        let after = self.0.partition_point(|(_, end)| *end <= number);
        self.0.get(after).is_some_and(|(start, _)| *start <= number)
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.common(other).next().is_some()
    }

    pub(crate) fn intersection(&self, other: &Self) -> Self {
        Self(self.common(other).collect())
    }

    /// The numbers that are in this set and not in the other.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let mut left = Vec::new();
        let mut taken = other.0.iter().peekable();
        for &(mut start, end) in &self.0 {
            while taken.next_if(|(_, taken_end)| *taken_end <= start).is_some() {}
            // A taken interval may reach into the next one, and is looked at again there.
            for &(taken_start, taken_end) in taken.clone() {
                if taken_start >= end {
                    break;
                }
                if start < taken_start {
                    left.push((start, taken_start));
                }
                start = start.max(taken_end);
            }
            if start < end {
                left.push((start, end));
            }
        }
        Self(left)
    }

    /// The numbers, in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.iter().flat_map(|(start, end)| *start..*end)
    }

    /// The intervals, in ascending order.
    pub(crate) fn iter_intervals(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.iter().copied()
    }

    pub(crate) fn first(&self) -> Option<u32> {
        self.0.first().map(|(start, _)| *start)
    }

    fn common<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (u32, u32)> + 'a {
        let (mut mine, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let (&&(start, end), &&(other_start, other_end)) = (mine.peek()?, theirs.peek()?);
                if end <= other_end {
                    mine.next();
                } else {
                    theirs.next();
                }
                let (start, end) = (start.max(other_start), end.min(other_end));
                if start < end {
                    return Some((start, end));
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(numbers: &BTreeSet<u32>) -> Set {
        Set::union_of(numbers.iter().map(|number| (*number, number + 1)))
    }

    proptest! {
        #[test]
        fn agrees_with_sets_of_the_standard_library(
            one in prop::collection::btree_set(0_u32..40, 0..30),
            other in prop::collection::btree_set(0_u32..40, 0..30),
        ) {
            let (a, b) = (set(&one), set(&other));
            prop_assert_eq!(a.iter().collect::<BTreeSet<_>>(), one.clone());
            prop_assert_eq!(a.intersection(&b).iter().collect::<Vec<_>>(), one.intersection(&other).copied().collect::<Vec<_>>());
            prop_assert_eq!(a.difference(&b).iter().collect::<Vec<_>>(), one.difference(&other).copied().collect::<Vec<_>>());
            prop_assert_eq!(a.intersects(&b), !one.is_disjoint(&other));
            prop_assert_eq!(a.first(), one.first().copied());
            prop_assert!((0..40).all(|number| a.contains(number) == one.contains(&number)));
            prop_assert_eq!(a.difference(&a).is_empty(), true);
        }
    }
}
