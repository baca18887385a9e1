//! How far a replay is: one line on standard error that changes, if that is a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use evenkeel_replay::Input;

use crate::terminal::thousands;

/// Tells about one log.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    /// `None`: nobody sees it.
    next: Option<Instant>,
}

const EVERY: Duration = Duration::from_millis(100);
const BAR: usize = 24;

// === impl Progress ===

impl Progress {
    pub(crate) fn new() -> Self {
        let started = Instant::now();
        Self { started, next: io::stderr().is_terminal().then_some(started + EVERY) }
    }

    /// Shows how far it is, if it is time for that.
    pub(crate) fn show(&mut self, lines: u64, input: &Input) {
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + EVERY);
            write(&format!("\r\x1b[2K{}", line(input.name(), lines, input.progress(), now - self.started)));
        }
    }

    /// Removes the line.
    pub(crate) fn end(&self) {
        if self.next.is_some() {
            write("\r\x1b[2K");
        }
    }
}

/// The name of the log, a bar, the lines read, and the seconds left.
fn line(name: &str, lines: u64, part: Option<f64>, elapsed: Duration) -> String {
    let lines = thousands(usize::try_from(lines).unwrap_or(usize::MAX));
    let Some(part) = part.filter(|part| *part > 0.0) else { return format!("{name}: {lines} lines") };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a bar")]
    let done = ((part * BAR as f64) as usize).min(BAR);
    let left = elapsed.as_secs_f64() * (1.0 - part) / part;
    format!("{name} [{}{}] {lines} lines, {left:.0} s left", "=".repeat(done), " ".repeat(BAR - done))
}

/// The replay goes on where nobody can be told about it.
fn write(text: &str) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_seconds_left() {
        let elapsed = Duration::from_secs(6);
        assert_eq!(
            line("audit.log", 1_200_000, Some(0.25), elapsed),
            "audit.log [======                  ] 1,200,000 lines, 18 s left"
        );
        assert_eq!(line("standard input", 5, None, elapsed), "standard input: 5 lines");
        assert!(line("a", 5, Some(1.0), elapsed).ends_with("5 lines, 0 s left"));
    }
}
