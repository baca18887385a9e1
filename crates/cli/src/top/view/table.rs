//! Draws a grid: headings, and as many rows as fit, so that the selected one is among them.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::panel::wrapped;
use crate::top::grid::{Grid, Tone};
use crate::top::palette::Palette;

pub(super) fn render(grid: &Grid, selected: Option<usize>, palette: Palette, area: Rect, buffer: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let layout = grid.layout(area.width.into());
    let titles = grid.title_line(&layout);
    buffer.set_line(area.x, area.y, &Line::styled(titles, palette.style(Tone::Strong)), area.width);
    if grid.rows.is_empty() {
        for (text, y) in wrapped(&grid.empty, area.width.into(), 3).into_iter().zip(area.y + 1..area.bottom()) {
            buffer.set_line(area.x, y, &Line::styled(text, palette.style(Tone::Faint)), area.width);
        }
        return;
    }
    let height = usize::from(area.height - 1);
    let first = first_row(selected.unwrap_or(0), height, grid.rows.len());
    for ((at, row), y) in grid.rows.iter().enumerate().skip(first).take(height).zip(area.y + 1..) {
        let text = grid.row_line(&layout, row);
        let style = if selected == Some(at) { palette.selected(row.tone) } else { palette.style(row.tone) };
        buffer.set_line(area.x, y, &Line::styled(text, style), area.width);
    }
}

/// The first row that is shown: the selected one is kept away from the edges.
fn first_row(selected: usize, height: usize, rows: usize) -> usize {
    selected.saturating_sub(height / 2).min(rows.saturating_sub(height))
}

#[cfg(test)]
mod tests {
    use super::first_row;

    #[test]
    fn the_selected_row_is_always_shown() {
        for rows in 0..30 {
            for height in 1..12 {
                for selected in 0..rows {
                    let first = first_row(selected, height, rows);
                    assert!((first..first + height).contains(&selected), "{selected} of {rows} in {height}");
                    assert!(first == 0 || first + height <= rows);
                }
            }
        }
    }
}
