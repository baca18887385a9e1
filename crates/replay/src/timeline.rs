//! From the time of a log to that of the simulation.

use evenkeel_engine::time::{Nanos, SECOND};

/// From the time of a log to that of the simulation, which starts at zero.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The latest request: when it arrived by the log, and by the simulation.
    latest: Option<(Nanos, Nanos)>,
}

/// Longer breaks between requests are shortened: nothing happens in them.
const BREAK_MAX: Nanos = 600 * SECOND;

// === impl Timeline ===

impl Timeline {
    /// When a request arrives in the simulation, which is not before any earlier one.
    pub(crate) fn map(&mut self, at: Nanos) -> Nanos {
        let mapped = match self.latest {
            Some((log, simulated)) => simulated + at.saturating_sub(log).clamp(0, BREAK_MAX),
            None => 0,
        };
        self.latest = Some((at, mapped));
        mapped
    }

    /// The next request follows after a break.
    pub(crate) fn begin_piece(&mut self) {
        if let Some((log, _)) = &mut self.latest {
            *log = Nanos::MIN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_are_short_and_time_never_goes_back() {
        let mut timeline = Timeline::default();
        let mapped = [5000, 5001, 5000, 9000].map(|second| timeline.map(second * SECOND) / SECOND);
        assert_eq!(mapped, [0, 1, 1, 601]);
        timeline.begin_piece();
        assert_eq!([7, 9].map(|second| timeline.map(second * SECOND) / SECOND), [1201, 1203]);
    }
}
