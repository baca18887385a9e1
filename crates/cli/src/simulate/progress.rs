//! How far the simulation is: a bar on terminals, and nothing elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A bar on standard error, which several threads move.
#[derive(Debug)]
pub(super) struct Progress {
    total: u64,
    started: Instant,
    /// Absent where nobody would see it.
    state: Option<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    done: u64,
    shown: Instant,
}

/// Nobody reads faster.
const SHOW_EVERY: Duration = Duration::from_millis(100);
const WIDTH: u64 = 40;

// === impl Progress ===

impl Progress {
    /// A bar for so many simulated seconds.
    pub(super) fn new(total: u64) -> Self {
        let started = Instant::now();
        let state = State { done: 0, shown: started };
        Self { total, started, state: io::stderr().is_terminal().then(|| Mutex::new(state)) }
    }

    /// One more second is simulated.
    pub(super) fn advance(&self) {
        let Some(state) = &self.state else { return };
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.done += 1;
        if state.shown.elapsed() >= SHOW_EVERY {
            state.shown = Instant::now();
            write(&format!("\r\x1b[2K{}", line(state.done, self.total, self.started.elapsed())));
        }
    }

    /// The bar goes.
    pub(super) fn end(&self) {
        if self.state.is_some() {
            write("\r\x1b[2K");
        }
    }
}

fn line(done: u64, total: u64, elapsed: Duration) -> String {
    let done = done.min(total);
    let filled = usize::try_from(WIDTH * done / total.max(1)).unwrap_or_default();
    let empty = usize::try_from(WIDTH).unwrap_or_default() - filled;
    let left = elapsed.as_millis() * u128::from(total - done) / u128::from(done.max(1)) / 1000;
    let bar = format!("[{}{}]", "=".repeat(filled), " ".repeat(empty));
    format!("{bar} {} % of {total} simulated seconds, {left} s left", 100 * done / total.max(1))
}

/// The simulation goes on where nobody can be told about it.
fn write(text: &str) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_fills_and_says_what_is_left() {
        let at = |done| line(done, 200, Duration::from_secs(10));
        assert_eq!(at(50), format!("[{}{}] 25 % of 200 simulated seconds, 30 s left", "=".repeat(10), " ".repeat(30)));
        assert_eq!(at(200), format!("[{}] 100 % of 200 simulated seconds, 0 s left", "=".repeat(40)));
        assert!(line(0, 0, Duration::ZERO).contains("0 % of 0"));
    }
}
