//! Tables: aligned columns, with groups of columns side by side where there are several.

use super::text_width;

/// A table of texts.
///
/// Columns are as wide as their widest text. Colour codes and hyperlinks take no width.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    /// Where a vertical line stands: in front of these columns.
    lines_before: Vec<usize>,
    /// A title above some columns: the first of them, their number, and the title.
    spans: Vec<(usize, usize, String)>,
    rows: Vec<Vec<String>>,
    has_ruler: bool,
}

/// A column: its heading, its alignment, and how wide it is at least.
#[derive(Debug, Clone)]
pub(crate) struct Column {
    title: String,
    align: Align,
    width_min: usize,
}

/// On which side of a column its texts stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// For names.
    Left,
    /// For numbers.
    Right,
}

/// The space between two columns.
const GAP: &str = "  ";

// === impl Column ===

impl Column {
    /// A column of names.
    pub(crate) fn left(title: impl Into<String>) -> Self {
        Self { title: title.into(), align: Align::Left, width_min: 0 }
    }

    /// A column of numbers.
    pub(crate) fn right(title: impl Into<String>) -> Self {
        Self { title: title.into(), align: Align::Right, width_min: 0 }
    }

    /// The column with that width, or a larger one.
    pub(crate) fn at_least(self, width_min: usize) -> Self {
        Self { width_min, ..self }
    }
}

// === impl Table ===

impl Table {
    /// A table with those columns and no rows yet.
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), ..Self::default() }
    }

    /// Adds a row. Missing cells at its end are empty.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<String>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Draws a vertical line in front of a column.
    pub(crate) fn line_before(&mut self, column: usize) {
        self.lines_before.push(column);
    }

    /// Puts a title above some columns.
    pub(crate) fn span(&mut self, first: usize, count: usize, title: impl Into<String>) {
        self.spans.push((first, count, title.into()));
    }

    /// Draws a line under the headings.
    pub(crate) fn ruler(&mut self) {
        self.has_ruler = true;
    }

    /// The table, a line for each row.
    pub(crate) fn render(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        if !self.spans.is_empty() {
            text += &self.span_line(&widths);
        }
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        text += &self.line(&titles, &widths);
        if self.has_ruler {
            text += &self.ruler_line(&widths);
        }
        for row in &self.rows {
            text += &self.line(row, &widths);
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(index, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(index)).map(|cell| visible_width(cell));
            cells.chain([visible_width(&column.title), column.width_min]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(width).collect()
    }

    fn gap(&self, column: usize) -> &'static str {
        match column {
            0 => "",
            _ if self.lines_before.contains(&column) => "  |  ",
            _ => GAP,
        }
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for (index, (column, width)) in self.columns.iter().zip(widths).enumerate() {
            line += self.gap(index);
            let cell = cells.get(index).map_or("", String::as_str);
            line += &padded(cell, *width, column.align);
        }
        ended(&line)
    }

    fn span_line(&self, widths: &[usize]) -> String {
        let mut line = String::new();
        let mut index = 0;
        while index < widths.len() {
            line += self.gap(index);
            let (count, title) = match self.spans.iter().find(|(first, _, _)| *first == index) {
                Some((_, count, title)) => ((*count).max(1), title.as_str()),
                None => (1, ""),
            };
            let last = (index + count).min(widths.len());
            let own: usize = widths.iter().take(last).skip(index).sum();
            let gaps: usize = (index + 1..last).map(|column| self.gap(column).len()).sum();
            line += &padded(title, own + gaps, Align::Right);
            index = last;
        }
        ended(&line)
    }

    fn ruler_line(&self, widths: &[usize]) -> String {
        let mut line = String::new();
        for (index, width) in widths.iter().enumerate() {
            line += &self.gap(index).replace(' ', "-").replace('|', "+");
            line += &"-".repeat(*width);
        }
        ended(&line)
    }
}

fn padded(text: &str, width: usize, align: Align) -> String {
    let space = " ".repeat(width.saturating_sub(visible_width(text)));
    match align {
        Align::Left => format!("{text}{space}"),
        Align::Right => format!("{space}{text}"),
    }
}

/// A line without the spaces at its end.
fn ended(line: &str) -> String {
    format!("{}\n", line.trim_end())
}

/// How many columns a text takes without its colour codes.
fn visible_width(text: &str) -> usize {
    if !text.contains('\x1b') {
        return text_width(text);
    }
    let mut characters = text.chars();
    let mut visible = String::new();
    while let Some(character) = characters.next() {
        if character != '\x1b' {
            visible.push(character);
            continue;
        }
        // `ESC [ … m`
        if characters.next() == Some('[') {
            characters.find(char::is_ascii_alphabetic);
        }
    }
    text_width(&visible)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::{ColorChoice, Shade};

    #[test]
    fn columns_are_aligned_and_colour_takes_no_width() {
        let paint = ColorChoice::Always.paint(&std::io::stdout());
        let mut table = Table::new([Column::left("level"), Column::right("seats").at_least(7), Column::left("note")]);
        table.row(["system", "74", "x"]);
        table.row([paint.text(Shade::Red, "a"), "1,000".to_owned(), String::new()]);
        let plain = table.render().replace("\x1b[1;31ma\x1b[0m", "a");
        assert_eq!(plain, "level     seats  note\nsystem       74  x\na         1,000\n");
    }

    #[test]
    fn wide_characters_are_aligned_with_others() {
        let mut table = Table::new([Column::left("flow"), Column::right("seats")]);
        for name in ["日本", "tenant", "e\u{301}"] {
            table.row([name, "1"]);
        }
        assert_eq!(table.render(), "flow    seats\n日本        1\ntenant      1\ne\u{301}           1\n");
    }

    #[test]
    fn groups_of_columns_have_titles_and_a_line_between_them() {
        let mut table = Table::new(["name", "a", "b", "a", "b"].map(Column::left));
        table.line_before(3);
        table.span(1, 2, "old");
        table.span(3, 2, "new");
        table.ruler();
        table.row(["x", "1", "2", "3", "4"]);
        assert_eq!(
            table.render(),
            "       old  |   new\nname  a  b  |  a  b\n------------+------\nx     1  2  |  3  4\n"
        );
    }
}
