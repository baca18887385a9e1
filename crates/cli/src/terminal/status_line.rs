//! `StatusLine`: a line on standard error that shows the progress of long work. Nothing is written if standard error is not a
//! terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use super::width::columns;
use super::{printable, taken};

/// The line. It is written at most ten times a second: nobody reads faster.
#[derive(Debug)]
pub(crate) struct StatusLine {
    /// When it may be written next; `None` if it is not shown.
    next: Option<Instant>,
}

const EVERY: Duration = Duration::from_millis(100);
const BAR: usize = 24;

// === impl StatusLine ===

impl StatusLine {
    pub(crate) fn new() -> Self {
        Self { next: io::stderr().is_terminal().then(|| Instant::now() + EVERY) }
    }

    /// Writes what the line says now, if it is time for that.
    pub(crate) fn show(&mut self, line: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.next = Some(now + EVERY);
            replace(&line());
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        if self.next.is_some() {
            write("\r\x1b[2K");
        }
    }
}

/// Replaces the line that is there. The part that does not fit is left out: a wrapped line could not be replaced.
pub(crate) fn replace(line: &str) {
    let line = printable(line);
    let line =
        columns(&io::stderr()).map_or(line.as_ref().into(), |columns| taken(line.chars(), columns.saturating_sub(1)));
    write(&format!("\r\x1b[2K{line}"));
}

/// A bar of which that part, from 0 to 1, is filled.
pub(crate) fn bar(part: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a bar")]
    let filled = ((part * BAR as f64) as usize).min(BAR);
    format!("[{}{}]", "=".repeat(filled), " ".repeat(BAR - filled))
}

/// How many seconds are left if the rest goes as fast as that part, which is above 0.
pub(crate) fn seconds_left(part: f64, elapsed: Duration) -> f64 {
    elapsed.as_secs_f64() * (1.0 - part).max(0.0) / part
}

/// Writes to standard error. Failures are ignored: the work goes on without progress.
pub(crate) fn write(text: &str) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
