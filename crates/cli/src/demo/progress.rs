//! How far the demo is: one line that changes on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::Duration;

use crate::terminal::status_line::{replace, write};

/// Without a terminal, so much time is between two lines.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Tells about one part on standard error.
#[derive(Debug)]
pub(crate) struct Progress {
    title: &'static str,
    length: Duration,
    screen: Screen,
}

#[derive(Debug)]
enum Screen {
    Terminal,
    Lines { next: Duration },
}

// === impl Progress ===

impl Progress {
    pub(crate) fn new(title: &'static str, length: Duration) -> Self {
        let screen = if io::stderr().is_terminal() { Screen::Terminal } else { Screen::Lines { next: Duration::ZERO } };
        Self { title, length, screen }
    }

    /// Shows how it goes, if it is time for that.
    pub(crate) fn show(&mut self, elapsed: Duration, figures: &str) {
        let line = self.line(elapsed, figures);
        match &mut self.screen {
            Screen::Terminal => replace(&line),
            Screen::Lines { next } if elapsed >= *next && elapsed < self.length => {
                *next += LINE_EVERY;
                write(&format!("{line}\n"));
            }
            Screen::Lines { .. } => {}
        }
    }

    /// Shows how it ended.
    pub(crate) fn end(&mut self, figures: &str) {
        let line = self.line(self.length, figures);
        match self.screen {
            Screen::Terminal => write(&format!("\r\x1b[2K{line}\n")),
            Screen::Lines { .. } => write(&format!("{line}\n")),
        }
    }

    fn line(&self, elapsed: Duration, figures: &str) -> String {
        let (elapsed, length) = (elapsed.min(self.length).as_secs(), self.length.as_secs());
        format!("{:<23} {elapsed:>2}/{length} s   {figures}", self.title)
    }
}

/// Says what comes next.
pub(crate) fn announce(text: &str) {
    write(&format!("{text}\n"));
}
