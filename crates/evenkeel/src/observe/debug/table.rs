//! The layout of all dumps (OB-10).

/// Rows of cells, the first of which is the header.
#[derive(Debug)]
pub(super) struct Table(Vec<Vec<String>>);

/// No column is narrower.
const WIDTH_MIN: usize = 8;

// === impl Table ===

impl Table {
    pub(super) fn new(columns: &[&str]) -> Self {
        Self(vec![columns.iter().map(|&column| column.to_owned()).collect()])
    }

    pub(super) fn push(&mut self, row: Vec<String>) {
        self.0.push(row);
    }

    /// The text: every cell but the last of a line has a comma and is padded to the width of its column.
    pub(super) fn text(&self) -> String {
        let widths = self.widths();
        let mut text = String::new();
        for row in &self.0 {
            for (column, cell) in row.iter().enumerate() {
                text.push_str(cell);
                if column + 1 < row.len() {
                    text.push(',');
                    let width = cell.chars().count() + 1;
                    let padding = widths.get(column).map_or(0, |widest| widest.saturating_sub(width));
                    text.extend(std::iter::repeat_n(' ', padding));
                }
            }
            text.push('\n');
        }
        text
    }

    /// The widest cell with its comma and a space.
    fn widths(&self) -> Vec<usize> {
        let mut widths = Vec::new();
        for row in &self.0 {
            widths.resize(widths.len().max(row.len()), WIDTH_MIN);
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count() + 2);
            }
        }
        widths
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ob_10_layout() {
        let mut table = Table::new(&["A", "LongerName", "Last"]);
        table.push(vec![String::new(), "x".to_owned(), "y".to_owned()]);
        table.push(vec!["ä".to_owned(), "longer-than-name".to_owned(), String::new()]);
        let text = "A,      LongerName,       Last\n,       x,                y\nä,      longer-than-name, \n";
        assert_eq!(table.text(), text);
    }
}
