//! `ServiceTimes`: how long requests of a flow schema took lately. It stands for the times of those that did not run.

use evenkeel_engine::time::Nanos;

/// The service times of the last requests of a flow schema.
///
/// Whoever needs a time gets that of one of them, in turn. Their average alone would have no long requests, and it is those that
/// others wait for.
#[derive(Debug, Default)]
pub(crate) struct ServiceTimes {
    recent: Vec<Nanos>,
    /// The place of the oldest, once there are [`RECENT_MAX`].
    oldest: usize,
    drawn: usize,
}

/// So many are kept of each flow schema: half a kilobyte.
const RECENT_MAX: usize = 64;
/// Which one is drawn after which: a prime number beyond [`RECENT_MAX`], so that each is drawn once in a round.
const STRIDE: usize = 10_007;

// === impl ServiceTimes ===

impl ServiceTimes {
    /// A request has taken so long.
    pub(crate) fn note(&mut self, ran: Nanos) {
        if self.recent.len() < RECENT_MAX {
            self.recent.push(ran);
        } else {
            self.recent[self.oldest] = ran;
            self.oldest = (self.oldest + 1) % RECENT_MAX;
        }
    }

    /// How long one of them took; `None` if there was none.
    pub(crate) fn draw(&mut self) -> Option<Nanos> {
        self.drawn = self.drawn.wrapping_add(STRIDE);
        self.recent.get(self.drawn.checked_rem(self.recent.len())?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_drawn_as_they_were() {
        let mut times = ServiceTimes::default();
        assert_eq!(times.draw(), None);
        times.note(5);
        assert_eq!((times.draw(), times.draw()), (Some(5), Some(5)));
        (1..=100).for_each(|ran| times.note(ran));
        let mut drawn: Vec<_> = (0..RECENT_MAX).filter_map(|_| times.draw()).collect();
        drawn.sort_unstable();
        assert_eq!(drawn, (37..=100).collect::<Vec<_>>(), "each of the last ones once");
    }
}
