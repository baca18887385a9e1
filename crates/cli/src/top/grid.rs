//! A table before it is drawn: columns, of which the least important ones go first on a narrow screen, and rows.

use crate::terminal::{printable, taken, text_width};

/// The content of a tab.
#[derive(Debug, Clone, Default)]
pub(super) struct Grid {
    pub(super) columns: Vec<Column>,
    pub(super) rows: Vec<Row>,
    /// The text where there are no rows.
    pub(super) empty: String,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) side: Side,
    /// How important it is: columns with a higher number go first.
    rank: u8,
    /// How narrow it gets before another column goes.
    width_min: usize,
}

/// On which side of its column a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// A row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// The key by which the selection remembers the row.
    pub(super) key: String,
    pub(super) cells: Vec<String>,
    pub(super) tone: Tone,
}

/// The tone of a row or of another text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tone {
    #[default]
    Normal,
    /// Nothing happens.
    Faint,
    /// The value is as it should be.
    Good,
    /// Requests wait.
    Warn,
    /// Requests are rejected.
    Bad,
    /// A heading.
    Strong,
}

/// The gap between two cells.
const GAP: &str = "  ";

// === impl Column ===

impl Column {
    /// For names, which are cut if they must be, down to that width.
    pub(super) fn left(title: &'static str, rank: u8, width_min: usize) -> Self {
        Self { title, side: Side::Left, rank, width_min }
    }

    /// For numbers, which are never cut.
    pub(super) fn right(title: &'static str, rank: u8) -> Self {
        Self { title, side: Side::Right, rank, width_min: usize::MAX }
    }
}

// === impl Grid ===

impl Grid {
    pub(super) fn new(columns: &[Column], empty: &str) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), empty: empty.to_owned() }
    }

    /// Adds a row. Cells may hold any characters.
    pub(super) fn push(&mut self, key: String, tone: Tone, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| printable(&cell).into_owned()).collect();
        self.rows.push(Row { key, cells, tone });
    }

    /// Keeps the rows that have a text in one of their names, in any case.
    pub(super) fn filter(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let text = text.to_lowercase();
        let names: Vec<usize> =
            self.columns.iter().enumerate().filter(|(_, column)| column.side == Side::Left).map(|(at, _)| at).collect();
        let has_it = |row: &Row, at: &usize| row.cells.get(*at).is_some_and(|cell| cell.to_lowercase().contains(&text));
        let all = self.rows.len();
        self.rows.retain(|row| names.iter().any(|at| has_it(row, at)));
        if self.rows.is_empty() && all > 0 {
            self.empty = format!("None of {all} rows contains {text:?}.");
        }
    }

    /// The columns that fit into that width, and how wide each is. The first one always stays.
    pub(super) fn layout(&self, width: usize) -> Vec<(usize, usize)> {
        let mut shown: Vec<(usize, usize)> = (0..self.columns.len()).map(|at| (at, self.natural_width(at))).collect();
        let width_min = |(at, natural): &(usize, usize)| self.columns[*at].width_min.min(*natural);
        let total = |widths: &mut dyn Iterator<Item = usize>| widths.map(|width| width + GAP.len()).sum::<usize>();
        let room = width + GAP.len();
        while shown.len() > 1 && total(&mut shown.iter().map(width_min)) > room {
            let least = shown.iter().enumerate().skip(1).max_by_key(|(_, (at, _))| self.columns[*at].rank);
            let Some((least, _)) = least else { break };
            shown.remove(least);
        }
        // The widest names give way first.
        while total(&mut shown.iter().map(|(_, width)| *width)) > room {
            let can_shrink = |one: &&mut (usize, usize)| one.1 > self.columns[one.0].width_min;
            match shown.iter_mut().filter(can_shrink).max_by_key(|(_, width)| *width) {
                Some((_, width)) => *width -= 1,
                None => break,
            }
        }
        if let [(_, only)] = shown.as_mut_slice() {
            *only = (*only).min(width);
        }
        shown
    }

    /// The headings, in the columns that fit.
    pub(super) fn title_line(&self, layout: &[(usize, usize)]) -> String {
        self.line(layout, |at| self.columns[at].title)
    }

    /// A row, in the columns that fit.
    pub(super) fn row_line(&self, layout: &[(usize, usize)], row: &Row) -> String {
        self.line(layout, |at| row.cells.get(at).map_or("", String::as_str))
    }

    fn line<'a>(&self, layout: &[(usize, usize)], cell: impl Fn(usize) -> &'a str) -> String {
        let cells = layout.iter().map(|(at, width)| fitted(cell(*at), *width, self.columns[*at].side));
        cells.collect::<Vec<_>>().join(GAP)
    }

    fn natural_width(&self, at: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| text_width(cell));
        cells.chain([text_width(self.columns[at].title)]).max().unwrap_or(0)
    }
}

/// A text in exactly that width, cut with an ellipsis if it is longer.
pub(super) fn fitted(text: &str, width: usize, side: Side) -> String {
    let own = text_width(text);
    if own > width {
        return cut(text, width);
    }
    let space = " ".repeat(width - own);
    match side {
        Side::Left => format!("{text}{space}"),
        Side::Right => format!("{space}{text}"),
    }
}

/// Leaves out the middle: names differ at their ends.
fn cut(text: &str, width: usize) -> String {
    let Some(room) = width.checked_sub(1) else { return String::new() };
    let head = taken(text.chars(), room / 3);
    let tail = taken(text.chars().rev(), room.saturating_sub(text_width(&head)));
    let tail: String = tail.chars().rev().collect();
    let space = " ".repeat(room.saturating_sub(text_width(&head) + text_width(&tail)));
    format!("{head}…{tail}{space}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let columns = [
            Column::left("name", 0, 16),
            Column::right("seats", 1),
            Column::left("schema", 3, 10),
            Column::right("p99", 2),
        ];
        let mut grid = Grid::new(&columns, "nothing");
        let cells = ["a-rather-long-name-of-a-flow", "12", "global-default", "1.4 s"];
        grid.push("a".to_owned(), Tone::Normal, cells.map(Into::into));
        grid
    }

    #[test]
    fn names_shrink_and_then_columns_go_by_rank() {
        assert_eq!(grid().layout(100), [(0, 28), (1, 5), (2, 14), (3, 5)]);
        assert_eq!(grid().layout(50), [(0, 20), (1, 5), (2, 14), (3, 5)]);
        assert_eq!(grid().layout(42), [(0, 16), (1, 5), (2, 10), (3, 5)]);
        assert_eq!(grid().layout(41), [(0, 27), (1, 5), (3, 5)]);
        assert_eq!(grid().layout(24), [(0, 17), (1, 5)]);
        assert_eq!(grid().layout(5), [(0, 5)]);
        assert_eq!(grid().layout(0), [(0, 0)]);
        assert_eq!(Grid::default().layout(10), []);
    }

    #[test]
    fn texts_fit_whatever_they_are() {
        assert_eq!(fitted("abc", 5, Side::Left), "abc  ");
        assert_eq!(fitted("abc", 5, Side::Right), "  abc");
        assert_eq!(fitted("abcdefghij", 7, Side::Left), "ab…ghij");
        assert_eq!(fitted("日本語日本語", 8, Side::Left), "日…本語 ");
        assert_eq!(["abc"; 3].map(|text| fitted(text, 1, Side::Left)), ["…"; 3]);
        assert_eq!(fitted("abc", 0, Side::Left), "");
        // Characters without a width cost nothing either.
        let accents = "\u{301}".repeat(100_000);
        assert!(fitted(&format!("long name {accents}"), 5, Side::Left).len() < 100);
        for width in 0..20 {
            assert_eq!(text_width(&fitted("日本語-abc-日本語", width, Side::Left)), width);
        }
    }

    #[test]
    fn the_filter_looks_at_names_in_any_case() {
        let mut all = grid();
        all.filter("GLOBAL");
        assert_eq!(all.rows.len(), 1);
        all.filter("12");
        assert_eq!((all.rows.len(), all.empty.as_str()), (0, "None of 1 rows contains \"12\"."));
    }

    #[test]
    fn cells_have_nothing_that_a_terminal_would_carry_out() {
        let mut grid = grid();
        grid.push(String::new(), Tone::Normal, ["\u{1b}[2Jx\u{202e}".to_owned()]);
        assert_eq!(grid.rows[1].cells, [r"\u{1b}[2Jx\u{202e}"]);
    }
}
