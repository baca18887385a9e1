//! The screen: a pure function from the state to a buffer.

mod head;
mod panel;
mod table;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::grid::Tone;
use super::palette::Palette;
use super::state::{Connection, Mode, Top};
use super::tabs::{Scope, SelectedRow, Tab};
use crate::terminal::{is_printable, printable};

pub(super) use head::{diagnosis_tone, summary};

/// From this height on, there is room for flows and delays below the levels.
const TALL: u16 = 36;
/// From this width on, flows and delays are side by side.
const WIDE: u16 = 140;
/// The gap between two tables that are side by side.
const MARGIN: u16 = 3;

/// Draws the whole screen.
pub(super) fn render(top: &Top, palette: Palette, area: Rect, buffer: &mut Buffer) {
    if area.height < 2 || area.width < 10 {
        return;
    }
    let head = head::render(top, palette, area, buffer);
    let body = below(area, head);
    let body = Rect { height: body.height.saturating_sub(1), ..body };
    let tabs = tabs(top, palette, body, buffer);
    tables(top, palette, below(body, tabs), buffer);
    match top.mode {
        Mode::Explain => panel::explanation(top, palette, body, buffer),
        Mode::Help => panel::help(palette, body, buffer),
        Mode::Browse | Mode::Filter => {}
    }
    foot(top, palette, Rect { y: area.bottom() - 1, height: 1, ..area }, buffer);
    scrub(area, buffer);
}

/// The part of an area under its first lines.
fn below(area: Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    Rect { y: area.y + lines, height: area.height - lines, ..area }
}

/// The names of the tables, the shown one marked.
fn tabs(top: &Top, palette: Palette, area: Rect, buffer: &mut Buffer) -> u16 {
    if area.height == 0 {
        return 0;
    }
    let shown = Tab::shown(top);
    let line = |end: &str| {
        let mut spans = Vec::new();
        for (at, tab) in shown.iter().enumerate() {
            let text = format!(" {} {}{end}", at + 1, tab.title());
            let style = if *tab == top.tab { palette.selected(Tone::Strong) } else { palette.style(Tone::Normal) };
            spans.extend([Span::styled(text, style), Span::raw(end.to_owned())]);
        }
        Line::from(spans)
    };
    // All of them fit into 80 columns without their margins.
    let wide = line(" ");
    let is_wide = wide.width() <= usize::from(area.width) + 1;
    buffer.set_line(area.x, area.y, &if is_wide { wide } else { line("") }, area.width);
    1
}

fn tables(top: &Top, palette: Palette, area: Rect, buffer: &mut Buffer) {
    let grid = top.tab.grid(top);
    let level = match top.tab.subject(top) {
        Some(SelectedRow::Level(level)) if top.tab == Tab::Levels && buffer.area.height >= TALL => level,
        _ => {
            let keys: Vec<&str> = grid.rows.iter().map(|row| row.key.as_str()).collect();
            table::render(&grid, top.selected(top.tab, &keys), palette, area, buffer);
            return;
        }
    };
    let keys: Vec<&str> = grid.rows.iter().map(|row| row.key.as_str()).collect();
    let rows = u16::try_from(grid.rows.len() + 1).unwrap_or(u16::MAX).min(area.height / 2);
    table::render(&grid, top.selected(top.tab, &keys), palette, Rect { height: rows, ..area }, buffer);
    let rest = below(area, rows + 1);
    let parts = if area.width >= WIDE {
        let half = (rest.width - MARGIN) / 2;
        [Rect { width: half, ..rest }, Rect { x: rest.x + half + MARGIN, width: half, ..rest }]
    } else {
        let half = rest.height / 2;
        [Rect { height: half, ..rest }, below(rest, half)]
    };
    let titles = [format!("Flows of {}", level.name), format!("Who delays whom in {}", level.name)];
    for ((tab, title), part) in [Tab::Flows, Tab::Delays].into_iter().zip(titles).zip(parts) {
        if part.height > 0 {
            let title = Line::styled(printable(&title).into_owned(), palette.style(Tone::Strong));
            buffer.set_line(part.x, part.y, &title, part.width);
            table::render(&tab.whole_grid(top, Scope::Level(&level.name)), None, palette, below(part, 1), buffer);
        }
    }
}

/// The last line: a notice, the filter, or the keys.
fn foot(top: &Top, palette: Palette, area: Rect, buffer: &mut Buffer) {
    let (tone, text) = match (&top.connection, top.mode, &top.notice) {
        (_, Mode::Filter, _) => (Tone::Strong, format!("/{}▏  Enter: keep, Esc: show all", top.filter)),
        (Connection::Lost { why, retry_in }, ..) => {
            (Tone::Bad, format!("Not connected, next try in {} s: {why}", retry_in.as_secs()))
        }
        _ if !top.filter.is_empty() => (Tone::Warn, format!("Only rows with {:?}; Esc shows all", top.filter)),
        (.., Some(notice)) if top.tab == Tab::Flows || top.tab == Tab::Delays => (Tone::Warn, notice.clone()),
        _ => (Tone::Faint, "q quit  Tab table  ↑↓ select  Enter explain  / filter  p pause  ? help".to_owned()),
    };
    buffer.set_line(area.x, area.y, &Line::styled(printable(&text).into_owned(), palette.style(tone)), area.width);
}

/// Removes control characters, which a terminal would carry out. All texts are clean when they are drawn; this is a second guard.
fn scrub(area: Rect, buffer: &mut Buffer) {
    for position in area.positions() {
        if let Some(cell) = buffer.cell_mut(position)
            && !cell.symbol().chars().all(is_printable)
        {
            // An escape has no room in a cell.
            cell.set_symbol("\u{fffd}");
        }
    }
}

#[cfg(test)]
mod tests;
