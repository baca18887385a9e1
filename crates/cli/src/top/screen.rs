//! The terminal as a screen, which is given back as it was: at the end, after errors, and after a panic.

use std::io::{self, Stdout, stdout};
use std::panic;
use std::sync::Once;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};

use super::palette::Palette;
use super::state::Top;
use super::view;

/// The terminal while it is a screen. Dropping it gives the terminal back.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    palette: Palette,
}

// === impl Screen ===

impl Screen {
    pub(super) fn open(palette: Palette) -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        // From here on, whatever happens, the terminal is given back.
        let opened = execute!(stdout(), EnterAlternateScreen).and_then(|()| {
            let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
            Ok(Self { terminal, palette })
        });
        opened.inspect_err(|_| restore())
    }

    /// Draws the state. The size of the terminal may have changed.
    pub(super) fn draw(&mut self, top: &Top) -> io::Result<()> {
        let palette = self.palette;
        self.terminal.draw(|frame| view::render(top, palette, frame.area(), frame.buffer_mut())).map(drop)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back. It is all the same if that happens twice, or if the terminal is gone.
fn restore() {
    let _ = execute!(stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}

/// A panic is told on the ordinary screen, where it can be read.
fn restore_on_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            tell(info);
        }));
    });
}
