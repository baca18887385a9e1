//! How evenly seats are divided among flows that want more of them.

/// The Jain index of some shares: 1 if all are equal, 1/n if one of n has everything; `None` for fewer than two.
pub fn jain(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        count += 1.0;
        sum += share;
        squares += share * share;
    }
    (count > 1.0).then(|| if squares > 0.0 { sum * sum / (count * squares) } else { 1.0 })
}

/// The indexes of many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Indexes {
    count: f64,
    sum: f64,
    min: Option<f64>,
}

// === impl Indexes ===

impl Indexes {
    pub(crate) fn add(&mut self, index: f64) {
        self.count += 1.0;
        self.sum += index;
        self.min = Some(self.min.map_or(index, |min| min.min(index)));
    }

    pub(crate) fn mean(self) -> Option<f64> {
        (self.count > 0.0).then(|| self.sum / self.count)
    }

    pub(crate) fn min(self) -> Option<f64> {
        self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_fair() {
        assert_eq!(jain([3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain([1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!((jain([1.0]), jain([]), jain([0.0, 0.0])), (None, None, Some(1.0)));
    }
}
