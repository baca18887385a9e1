//! How far a replay is: the log, a bar, the lines read, and the seconds left.

use std::time::{Duration, Instant};

use evenkeel_replay::Input;

use crate::terminal::status_line::{bar, seconds_left};
use crate::terminal::{StatusLine, thousands};

/// Tells about one log.
#[derive(Debug)]
pub(crate) struct Progress {
    started: Instant,
    line: StatusLine,
}

// === impl Progress ===

impl Progress {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), line: StatusLine::new() }
    }

    /// Shows how far it is, if it is time for that.
    pub(crate) fn show(&mut self, lines: u64, input: &Input) {
        self.line.show(|| line(input.name(), lines, input.progress(), self.started.elapsed()));
    }

    /// Removes the line.
    pub(crate) fn end(&self) {
        self.line.clear();
    }
}

fn line(name: &str, lines: u64, part: Option<f64>, elapsed: Duration) -> String {
    let lines = thousands(usize::try_from(lines).unwrap_or(usize::MAX));
    match part.filter(|part| *part > 0.0) {
        None => format!("{name}: {lines} lines"),
        Some(part) => format!("{name} {} {lines} lines, {:.0} s left", bar(part), seconds_left(part, elapsed)),
    }
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
