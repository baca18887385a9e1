//! How the requests of one tenant went.

use std::time::Duration;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The request was served.
    Served,
    /// The request was rejected: 429 or 503.
    Rejected,
    /// There was no response, or another one.
    Failed,
}

/// The endings of many requests, and how long those took that were served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) rejected: usize,
    pub(crate) failed: usize,
    served: Vec<Duration>,
}

// === impl Tally ===

impl Tally {
    pub(crate) fn add(&mut self, ending: Ending, took: Duration) {
        match ending {
            Ending::Served => self.served.push(took),
            Ending::Rejected => self.rejected += 1,
            Ending::Failed => self.failed += 1,
        }
    }

    /// This one and others together.
    pub(crate) fn sum<'a>(tallies: impl IntoIterator<Item = &'a Self>) -> Self {
        tallies.into_iter().fold(Self::default(), |mut sum, tally| {
            sum.rejected += tally.rejected;
            sum.failed += tally.failed;
            sum.served.extend_from_slice(&tally.served);
            sum
        })
    }

    /// The served requests alone, without the first so many of them.
    pub(crate) fn served_after(&self, count: usize) -> Self {
        Self { served: self.served.get(count..).unwrap_or_default().to_vec(), ..Self::default() }
    }

    pub(crate) fn requests(&self) -> usize {
        self.served() + self.rejected + self.failed
    }

    pub(crate) fn served(&self) -> usize {
        self.served.len()
    }

    /// The shortest time that at least so many per cent of the responses did not exceed, if there were any.
    pub(crate) fn percentile(&self, percent: usize) -> Option<Duration> {
        let mut sorted = self.served.clone();
        sorted.sort_unstable();
        let rank = (sorted.len() * percent).div_ceil(100);
        sorted.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_only_answers() {
        let mut tally = Tally::default();
        assert_eq!(tally.percentile(99), None);
        tally.add(Ending::Rejected, Duration::from_secs(100));
        tally.add(Ending::Failed, Duration::from_secs(100));
        for milliseconds in (1..=200).rev() {
            tally.add(Ending::Served, Duration::from_millis(milliseconds));
        }
        let found = [50, 99, 100].map(|percent| tally.percentile(percent).unwrap().as_millis());
        assert_eq!((found, tally.requests(), tally.served()), ([100, 198, 200], 202, 200));
        let last = tally.served_after(150);
        assert_eq!((last.requests(), last.percentile(100)), (50, Some(Duration::from_millis(50))));
    }
}
