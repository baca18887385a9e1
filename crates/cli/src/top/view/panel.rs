//! Panels over the tables: explanations and help.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Widget};

use crate::terminal::{taken, text_width};
use crate::top::explain::{self, Paragraph};
use crate::top::grid::Tone;
use crate::top::keys;
use crate::top::palette::Palette;
use crate::top::state::Top;

/// Longer lines are hard to read.
const WIDTH_MAX: u16 = 100;

/// Explains the selected row, at the lower end of the area.
pub(super) fn explanation(top: &Top, palette: Palette, area: Rect, buffer: &mut Buffer) {
    draw(" explain ", &explain::explain(top), palette, area, buffer);
}

pub(super) fn help(palette: Palette, area: Rect, buffer: &mut Buffer) {
    let line = |(keys, what): &(&str, &str)| Paragraph { tone: Tone::Normal, text: format!("{keys:<12}{what}") };
    draw(" keys ", &keys::HELP.iter().map(line).collect::<Vec<_>>(), palette, area, buffer);
}

fn draw(title: &'static str, paragraphs: &[Paragraph], palette: Palette, area: Rect, buffer: &mut Buffer) {
    let width = area.width.min(WIDTH_MAX);
    if width < 10 || area.height < 3 {
        return;
    }
    let room = usize::from(width) - 4;
    let lines: Vec<(Tone, String)> = paragraphs
        .iter()
        .flat_map(|one| wrapped(&one.text, room, 20).into_iter().map(move |line| (one.tone, line)))
        .collect();
    let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let panel = Rect { y: area.bottom() - height, width, height, ..area };
    Clear.render(panel, buffer);
    Block::bordered().title(title).render(panel, buffer);
    for ((tone, line), y) in lines.into_iter().zip(panel.y + 1..panel.bottom() - 1) {
        buffer.set_line(panel.x + 2, y, &Line::styled(line, palette.style(tone)), width - 4);
    }
}

/// A text in lines of at most that width, cut after so many lines.
pub(super) fn wrapped(text: &str, width: usize, lines_max: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if text_width(line) + 1 + text_width(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let is_cut = lines.len() > lines_max;
    lines.truncate(lines_max);
    let last = lines.len().saturating_sub(1);
    let fits = |(at, line): (usize, String)| cut(&line, width, if is_cut && at == last { "…" } else { "" });
    lines.into_iter().enumerate().map(fits).collect()
}

/// A line with that end, or as much of its beginning as fits.
fn cut(line: &str, width: usize, end: &str) -> String {
    let whole = format!("{line}{end}");
    if text_width(&whole) <= width {
        return whole;
    }
    taken(line.chars(), width.saturating_sub(1)) + "…"
}

#[cfg(test)]
mod tests {
    use super::wrapped;

    #[test]
    fn texts_are_wrapped_at_blanks() {
        assert_eq!(wrapped("one two three", 7, 5), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 7, 1), ["one tw…"]);
        assert_eq!(wrapped("incomprehensible", 7, 1), ["incomp…"]);
        assert_eq!(wrapped("", 7, 1), [""]);
    }
}
