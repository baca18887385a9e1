//! One frame as text, for people without a screen.

use super::grid::{Grid, Tone};
use super::state::Top;
use super::tabs::{Scope, Tab};
use super::view::{diagnosis_tone, summary};
use crate::terminal::{Paint, Shade, printable};

/// Rows of a table, but for levels, of which all are shown.
const ROWS_MAX: usize = 20;

/// The frame that the state has, as text with a table for each of the first tabs, and one for language models if there are any.
pub(super) fn text(top: &Top, width: usize, paint: Paint) -> String {
    let Some(frame) = top.frame() else { return String::new() };
    let mut text = format!("{}\n{}\n", printable(&top.url), summary(frame, width));
    if !frame.diagnosis.text.is_empty() {
        let diagnosis = painted(paint, diagnosis_tone(frame), &printable(&frame.diagnosis.text));
        text += &format!("{diagnosis}\n");
    }
    for (tab, title) in [
        (Tab::Levels, "Levels"),
        (Tab::Flows, "Heaviest flows of the last minute"),
        (Tab::Delays, "Who delays whom"),
        (Tab::Queues, "Queues"),
        (Tab::Models, "Language models"),
    ] {
        if !Tab::shown(top).contains(&tab) {
            continue;
        }
        text += &format!("\n{}\n", paint.text(Shade::Strong, title));
        let rows_max = if tab == Tab::Levels { usize::MAX } else { ROWS_MAX };
        text += &table(&tab.whole_grid(top, Scope::All), width, rows_max, paint);
    }
    if let Some(notice) = &top.notice {
        text += &format!("\n{}\n", printable(notice));
    }
    text
}

fn table(grid: &Grid, width: usize, rows_max: usize, paint: Paint) -> String {
    if grid.rows.is_empty() {
        return format!("{}\n", printable(&grid.empty));
    }
    let layout = grid.layout(width);
    let mut text = format!("{}\n", grid.title_line(&layout).trim_end());
    for row in grid.rows.iter().take(rows_max) {
        text += &format!("{}\n", painted(paint, row.tone, grid.row_line(&layout, row).trim_end()));
    }
    if let more @ 1.. = grid.rows.len().saturating_sub(rows_max) {
        text += &format!("and {more} more\n");
    }
    text
}

fn painted(paint: Paint, tone: Tone, text: &str) -> String {
    let shade = match tone {
        Tone::Normal => return text.to_owned(),
        Tone::Faint => Shade::Faint,
        Tone::Good => Shade::Green,
        Tone::Warn => Shade::Yellow,
        Tone::Bad => Shade::Red,
        Tone::Strong => Shade::Strong,
    };
    paint.text(shade, text)
}
