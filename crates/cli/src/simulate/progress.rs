//! How far the simulation is: a bar, the simulated seconds, and the seconds left.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::terminal::StatusLine;
use crate::terminal::status_line::{bar, seconds_left};

/// Tells about all runs, which several threads carry out.
#[derive(Debug)]
pub(super) struct Progress {
    total: u64,
    started: Instant,
    state: Mutex<ProgressState>,
}

#[derive(Debug)]
struct ProgressState {
    done: u64,
    line: StatusLine,
}

// === impl Progress ===

impl Progress {
    /// A bar for so many simulated seconds.
    pub(super) fn new(total: u64) -> Self {
        let state = ProgressState { done: 0, line: StatusLine::new() };
        Self { total, started: Instant::now(), state: Mutex::new(state) }
    }

    /// One more second is simulated.
    pub(super) fn advance(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        let done = state.done;
        state.line.show(|| line(done, self.total, self.started.elapsed()));
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).line.clear();
    }
}

fn line(done: u64, total: u64, elapsed: Duration) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a bar")]
    let part = done.clamp(1, total.max(1)) as f64 / total.max(1) as f64;
    let percent = part * 100.0;
    format!("{} {percent:.0} % of {total} simulated seconds, {:.0} s left", bar(part), seconds_left(part, elapsed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_and_says_what_is_left() {
        let at = |done| line(done, 200, Duration::from_secs(10));
        assert_eq!(at(50), format!("[{}{}] 25 % of 200 simulated seconds, 30 s left", "=".repeat(6), " ".repeat(18)));
        assert_eq!(at(200), format!("[{}] 100 % of 200 simulated seconds, 0 s left", "=".repeat(24)));
        assert!(line(0, 0, Duration::ZERO).contains("of 0 simulated seconds"));
    }
}
