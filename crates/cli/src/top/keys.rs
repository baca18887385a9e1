//! The keys of the screen, and their actions.

use std::ops::ControlFlow;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::state::{Mode, Top};
use super::tabs::Tab;

/// The keys, and what they do.
pub(super) const HELP: [(&str, &str); 8] = [
    ("1 … 8, Tab", "choose a table; Shift-Tab goes back"),
    ("↑ ↓, j k", "select a row; also Page Up, Page Down, Home, End"),
    ("Enter", "explain the selected row"),
    ("/", "show only rows whose names contain a text; Esc shows all again"),
    ("p, Space", "pause and resume"),
    ("Esc", "close what is open"),
    ("?", "this help"),
    ("q, Ctrl-C", "quit"),
];

const PAGE: isize = 10;

/// Carries out the action of a key. Breaks off to quit.
pub(super) fn press(top: &mut Top, key: KeyEvent) -> ControlFlow<()> {
    if key.kind == KeyEventKind::Release {
        return ControlFlow::Continue(());
    }
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
    }
    match top.mode {
        Mode::Filter => filter(top, key.code),
        Mode::Help => top.mode = Mode::Browse,
        Mode::Browse | Mode::Explain => return browse(top, key.code),
    }
    ControlFlow::Continue(())
}

fn filter(top: &mut Top, code: KeyCode) {
    match code {
        KeyCode::Enter => top.mode = Mode::Browse,
        KeyCode::Esc => {
            top.filter.clear();
            top.mode = Mode::Browse;
        }
        KeyCode::Backspace => drop(top.filter.pop()),
        KeyCode::Char(character) => top.type_filter(character),
        _ => {}
    }
}

fn browse(top: &mut Top, code: KeyCode) -> ControlFlow<()> {
    match code {
        KeyCode::Char('q') => return ControlFlow::Break(()),
        KeyCode::Esc | KeyCode::Enter if top.mode == Mode::Explain => top.mode = Mode::Browse,
        KeyCode::Esc => top.filter.clear(),
        KeyCode::Enter => top.mode = Mode::Explain,
        KeyCode::Char('?' | 'h') => top.mode = Mode::Help,
        KeyCode::Char('/') => top.mode = Mode::Filter,
        KeyCode::Char('p' | ' ') => top.toggle_pause(),
        KeyCode::Tab | KeyCode::Right => top.tab = top.tab.next(top),
        KeyCode::BackTab | KeyCode::Left => top.tab = top.tab.previous(top),
        KeyCode::Char(digit @ '1'..='9') => {
            let at = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
            top.tab = Tab::shown(top).get(at).copied().unwrap_or(top.tab);
        }
        KeyCode::Down | KeyCode::Char('j') => step(top, 1),
        KeyCode::Up | KeyCode::Char('k') => step(top, -1),
        KeyCode::PageDown => step(top, PAGE),
        KeyCode::PageUp => step(top, -PAGE),
        KeyCode::Home | KeyCode::Char('g') => step(top, isize::MIN),
        KeyCode::End | KeyCode::Char('G') => step(top, isize::MAX),
        _ => {}
    }
    ControlFlow::Continue(())
}

/// Moves the selection, within the rows.
fn step(top: &mut Top, rows: isize) {
    let grid = top.tab.grid(top);
    let keys: Vec<&str> = grid.rows.iter().map(|row| row.key.as_str()).collect();
    let Some(at) = top.selected(top.tab, &keys) else { return };
    let at = at.saturating_add_signed(rows).min(keys.len() - 1);
    let key = keys[at].to_owned();
    top.select(top.tab, &key);
}
