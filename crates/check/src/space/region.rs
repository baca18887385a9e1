//! Boxes of requests: some values of each attribute.

use super::Set;

/// Which attributes requests have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Sort {
    /// Verb, API group, resource, namespace, headers.
    Resource,
    /// Verb and path, and at the end headers; the other two sides of a box are always the number 0.
    Path,
}

/// The requests of one sort that have one of some values on each side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) sort: Sort,
    pub(crate) sides: [Set; 5],
}

/// One request of a sort: a number on each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) sort: Sort,
    pub(crate) sides: [u32; 5],
}

// === impl Region ===

impl Region {
    pub(crate) fn is_empty(&self) -> bool {
        self.sides.iter().any(Set::is_empty)
    }

    pub(crate) fn contains(&self, point: &Point) -> bool {
        self.sort == point.sort && self.sides.iter().zip(point.sides).all(|(set, number)| set.contains(number))
    }

    pub(crate) fn intersects(&self, other: &Self) -> bool {
        self.sort == other.sort && self.sides.iter().zip(&other.sides).all(|(mine, theirs)| mine.intersects(theirs))
    }

    pub(crate) fn intersection(&self, other: &Self) -> Option<Self> {
        if self.sort != other.sort {
            return None;
        }
        let mut sides: [Set; 5] = Default::default();
        for (side, (mine, theirs)) in sides.iter_mut().zip(self.sides.iter().zip(&other.sides)) {
            *side = mine.intersection(theirs);
        }
        Some(Self { sort: self.sort, sides }).filter(|region| !region.is_empty())
    }

    /// What remains of the region without another one: disjoint boxes.
    pub(crate) fn without(mut self, other: &Self) -> Vec<Self> {
        if !self.intersects(other) {
            return vec![self];
        }
        let mut pieces = Vec::new();
        for (index, theirs) in other.sides.iter().enumerate() {
            let Some(mine) = self.sides.get_mut(index) else { break };
            let outside = mine.difference(theirs);
            *mine = mine.intersection(theirs);
            if !outside.is_empty() {
                let mut piece = self.clone();
                if let Some(side) = piece.sides.get_mut(index) {
                    *side = outside;
                }
                pieces.push(piece);
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(sides: [(u32, u32); 4]) -> Region {
        let [a, b, c, d] = sides.map(|(start, end)| Set::interval(start, end));
        Region { sort: Sort::Resource, sides: [a, b, c, d, Set::interval(0, 1)] }
    }

    #[test]
    fn pieces_are_disjoint_and_are_all_that_remains() {
        let whole = region([(0, 3), (0, 3), (0, 3), (0, 3)]);
        for taken in [
            region([(1, 2), (0, 2), (2, 3), (0, 3)]),
            region([(0, 3), (0, 3), (0, 3), (0, 3)]),
            region([(5, 6), (0, 3), (0, 3), (0, 3)]),
        ] {
            let pieces = whole.clone().without(&taken);
            let all = (0..3_u32)
                .flat_map(|a| (0..3).flat_map(move |b| (0..3).flat_map(move |c| (0..3).map(move |d| [a, b, c, d]))));
            for sides in all {
                let [a, b, c, d] = sides;
                let point = Point { sort: Sort::Resource, sides: [a, b, c, d, 0] };
                let inside = pieces.iter().filter(|piece| piece.contains(&point)).count();
                assert_eq!(inside, usize::from(!taken.contains(&point)), "{sides:?}");
            }
        }
    }
}
