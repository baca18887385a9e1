//! What was recorded and what came out, side by side: what a test prints when they differ.

use std::fmt;

/// A comparison of some values, each under its name. It is shown as a table in which a `*` marks what differs.
#[derive(Debug, Default)]
pub struct SideBySide(Vec<Line>);

#[derive(Debug)]
struct Line {
    name: String,
    recorded: String,
    actual: String,
    agrees: bool,
}

// === impl SideBySide ===

impl SideBySide {
    /// Two values that have to be the same.
    pub fn same<T: PartialEq + fmt::Debug + ?Sized>(&mut self, name: impl fmt::Display, recorded: &T, actual: &T) {
        self.line(name, recorded, actual, recorded == actual);
    }

    /// Two numbers that may differ by that part of the recorded one.
    pub fn close(&mut self, name: impl fmt::Display, recorded: f64, actual: f64, tolerance: f64) {
        self.line(name, &recorded, &actual, (recorded - actual).abs() <= tolerance * recorded.abs());
    }

    /// Two numbers that may differ by that part of the recorded one, or that both have to be absent.
    pub fn close_or_absent(
        &mut self,
        name: impl fmt::Display,
        recorded: Option<f64>,
        actual: Option<f64>,
        tolerance: f64,
    ) {
        match (recorded, actual) {
            (Some(recorded), Some(actual)) => self.close(name, recorded, actual, tolerance),
            (recorded, actual) => self.line(name, &recorded, &actual, recorded.is_none() && actual.is_none()),
        }
    }

    /// Whether nothing differs.
    pub fn agrees(&self) -> bool {
        self.0.iter().all(|line| line.agrees)
    }

    /// Fails the test if something differs.
    ///
    /// # Panics
    /// If something differs: with the place and the table.
    pub fn assert(&self, place: impl fmt::Display) {
        assert!(self.agrees(), "{place}:\n{self}");
    }

    fn line<T: fmt::Debug + ?Sized>(&mut self, name: impl fmt::Display, recorded: &T, actual: &T, agrees: bool) {
        let (recorded, actual) = (format!("{recorded:?}"), format!("{actual:?}"));
        self.0.push(Line { name: name.to_string(), recorded, actual, agrees });
    }
}

impl fmt::Display for SideBySide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEAD: (&str, &str) = ("", "recorded");
        let width = |of: fn(&Line) -> &str, head: &str| {
            self.0.iter().map(|line| of(line).chars().count()).max().unwrap_or_default().max(head.len())
        };
        let names = width(|line| &line.name, HEAD.0);
        let recorded = width(|line| &line.recorded, HEAD.1);
        writeln!(f, "    {:names$}  {:recorded$}  actual", HEAD.0, HEAD.1)?;
        for line in &self.0 {
            let mark = if line.agrees { ' ' } else { '*' };
            writeln!(f, "  {mark} {:names$}  {:recorded$}  {}", line.name, line.recorded, line.actual)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_marked() {
        let mut comparison = SideBySide::default();
        comparison.same("queue", &Some(7), &Some(7));
        assert!(comparison.agrees());
        comparison.same("dispatched", &[1, 2], &[2, 1]);
        assert!(!comparison.agrees());
        let table = [
            "                recorded  actual\n",
            "    queue       Some(7)   Some(7)\n",
            "  * dispatched  [1, 2]    [2, 1]\n",
        ];
        assert_eq!(comparison.to_string(), table.concat());
    }

    #[test]
    fn a_tolerance_is_relative_to_what_was_recorded() {
        for (recorded, actual, agrees) in
            [(1000.0, 1000.9, true), (1000.0, 1001.1, false), (0.0, 1e-12, false), (1.0, f64::NAN, false)]
        {
            let mut comparison = SideBySide::default();
            comparison.close("average", recorded, actual, 1e-3);
            assert_eq!(comparison.agrees(), agrees, "{recorded} and {actual}");
        }
        for (recorded, actual, agrees) in
            [(None, None, true), (None, Some(1.0), false), (Some(1.0), None, false), (Some(1.0), Some(1.0), true)]
        {
            let mut comparison = SideBySide::default();
            comparison.close_or_absent("target", recorded, actual, 1e-3);
            assert_eq!(comparison.agrees(), agrees, "{recorded:?} and {actual:?}");
        }
    }

    #[test]
    #[should_panic(expected = "limits.jsonl, row 3:\n")]
    fn the_place_is_told() {
        let mut comparison = SideBySide::default();
        comparison.same("nominal", &1, &2);
        comparison.assert("limits.jsonl, row 3");
    }
}
