//! The tables that debug dumps are (OB-10).

/// Rows of a dump, by the names of their columns.
pub(super) struct Table<'a> {
    /// The name of each column, and the character that it starts at.
    columns: Vec<(&'a str, usize)>,
    rows: std::str::Lines<'a>,
}

/// The cells of a row.
pub(super) struct Row<'t, 'a> {
    columns: &'t [(&'a str, usize)],
    cells: Vec<&'a str>,
}

/// Rows that are read of a dump. A server with more requests than this shows enough of them.
const ROWS_MAX: usize = 100_000;
/// A flow or a path that is longer is cut.
const CELL_CHARS_MAX: usize = 512;

// === impl Table ===

impl<'a> Table<'a> {
    pub(super) fn new(dump: &'a str) -> Self {
        let mut rows = dump.lines();
        let header = rows.next().unwrap_or_default();
        let mut columns = Vec::new();
        let mut at = 0;
        for part in header.split_inclusive(',') {
            let name = part.trim_start_matches(' ');
            let blanks = part.chars().count() - name.chars().count();
            columns.push((name.trim_end_matches(','), at + blanks));
            at += part.chars().count();
        }
        Self { columns, rows }
    }

    /// What can be read of the rows.
    pub(super) fn map<T>(&mut self, read: impl Fn(&Row<'_, 'a>) -> Option<T>) -> Vec<T> {
        let rows = self.rows.by_ref().take(ROWS_MAX);
        rows.filter_map(|line| Row::new(&self.columns, line)).filter_map(|row| read(&row)).collect()
    }
}

// === impl Row ===

impl<'t, 'a> Row<'t, 'a> {
    /// Cuts a line where the columns are, since names of users and paths may have commas in them. `None` if its cells do not
    /// end where they should.
    fn new(columns: &'t [(&'a str, usize)], line: &'a str) -> Option<Self> {
        let mut cells = Vec::with_capacity(columns.len());
        let mut rest = line;
        for (index, (_, start)) in columns.iter().enumerate() {
            let Some((_, next)) = columns.get(index + 1) else {
                cells.push(rest.trim_end());
                break;
            };
            let end = rest.char_indices().nth(next - start).map_or(rest.len(), |(at, _)| at);
            let (cell, after) = rest.split_at(end);
            cells.push(cell.trim_end_matches(' ').strip_suffix(',')?);
            rest = after;
        }
        Some(Self { columns, cells })
    }

    pub(super) fn cell(&self, name: &str) -> Option<&'a str> {
        let at = self.columns.iter().position(|(column, _)| *column == name)?;
        self.cells.get(at).copied()
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        Some(self.cell(name)?.chars().take(CELL_CHARS_MAX).collect())
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.cell(name)?.parse().ok()
    }
}
