//! Measures what has a bar, and prints figure, bar and verdict side by side.
//!
//! A measure is repeated in many short rounds, and the figure is that of a round which few others were faster than: what
//! the machine does when it is left alone. Bars that are ratios compare figures of the same run.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a report is what this is for")]

mod groups;
mod instructions;

use std::time::Instant;

pub use groups::{Group, run_groups};
pub use instructions::{Call, called};

/// A table of figures and bars.
#[derive(Debug, Default)]
pub struct Bars {
    rows: Vec<[String; 4]>,
    missed: usize,
    /// The text that the name of a measure has to contain.
    filter: Option<String>,
}

/// The bar of a figure.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    /// At most this many.
    AtMost(f64, &'static str),
    /// At least this many.
    AtLeast(f64, &'static str),
    /// At most this many times another figure.
    TimesAtMost(f64, f64),
    /// At least this many times another figure.
    TimesAtLeast(f64, f64),
    /// Nothing: the figure is only told.
    None,
}

const ROUNDS: usize = 200;
const HEADINGS: [&str; 4] = ["measure", "figure", "bar", "verdict"];

/// How long one of `operations` takes, in nanoseconds, given what does them all.
pub fn nanos_per_operation(operations: u32, mut round: impl FnMut()) -> f64 {
    let mut figures: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed().as_secs_f64() * 1e9 / f64::from(operations)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    figures[ROUNDS / 10]
}

// === impl Bars ===

impl Bars {
    /// A table of the measures whose names contain the first argument that is no flag; of all, if there is none.
    pub fn filtered(arguments: impl IntoIterator<Item = String>) -> Self {
        let filter = arguments.into_iter().find(|argument| !argument.starts_with('-'));
        Self { filter, ..Self::default() }
    }

    /// Whether the filter lets a measure, or a group of them, through.
    pub fn wants(&self, measure: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| measure.contains(filter))
    }

    /// Measures and adds the figure, in the unit given, unless the filter leaves it out.
    pub fn measure(&mut self, measure: &str, unit: &str, figure_and_bar: impl FnOnce() -> (f64, Bar)) {
        if self.wants(measure) {
            let (figure, bar) = figure_and_bar();
            // The table comes when everything has been measured, which takes minutes.
            eprintln!("{measure}: {figure:.1} {unit}");
            self.add(measure, figure, unit, bar);
        }
    }

    /// Adds a figure, in the unit given.
    pub fn add(&mut self, measure: impl Into<String>, figure: f64, unit: &str, bar: Bar) {
        let (bar, verdict) = match bar {
            Bar::AtMost(limit, unit) => (format!("at most {limit} {unit}"), Some(figure <= limit)),
            Bar::AtLeast(limit, unit) => (format!("at least {limit} {unit}"), Some(figure >= limit)),
            Bar::TimesAtMost(times, other) => {
                (format!("at most {times} x (now {:.2} x)", figure / other), Some(figure <= times * other))
            }
            Bar::TimesAtLeast(times, other) => {
                (format!("at least {times} x (now {:.2} x)", figure / other), Some(figure >= times * other))
            }
            Bar::None => (String::new(), None),
        };
        self.missed += usize::from(verdict == Some(false));
        let verdict = verdict.map_or("", |holds| if holds { "holds" } else { "MISSED" });
        // An index between 0 and 1, or a part of a percent, needs more digits.
        let digits = if figure != 0.0 && figure.abs() < 2.0 { 4 } else { 1 };
        self.rows.push([measure.into(), format!("{figure:.digits$} {unit}"), bar, verdict.to_owned()]);
    }

    /// How many figures have missed their bars.
    pub fn missed(&self) -> usize {
        self.missed
    }

    /// Prints the table, if there is anything in it.
    pub fn print(&self, title: &str) {
        if self.rows.is_empty() {
            return;
        }
        let widths: Vec<usize> = (0..4)
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].len());
                cells.chain([HEADINGS[column].len()]).max().unwrap_or(0)
            })
            .collect();
        let line = |cells: [&str; 4]| {
            let padded: Vec<_> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            format!("| {} |", padded.join(" | "))
        };
        println!("\n{title}\n{}", line(HEADINGS));
        println!("|{}|", widths.iter().map(|width| "-".repeat(width + 2)).collect::<Vec<_>>().join("|"));
        for row in &self.rows {
            println!("{}", line(row.each_ref().map(String::as_str)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_filter_leaves_out_is_not_measured() {
        let measured = |arguments: &[&str]| {
            let mut bars = Bars::filtered(arguments.iter().map(|&argument| argument.to_owned()));
            let mut measured = Vec::new();
            for name in ["one queue", "two queues", "classify"] {
                bars.measure(name, "ns", || {
                    measured.push(name);
                    (1.0, Bar::None)
                });
            }
            assert_eq!(bars.rows.len(), measured.len());
            measured
        };
        assert_eq!(measured(&["--bench"]), ["one queue", "two queues", "classify"]);
        assert_eq!(measured(&["--bench", "queue"]), ["one queue", "two queues"]);
        assert_eq!(measured(&["class", "--bench", "queue"]), ["classify"]);
        assert!(measured(&["deal"]).is_empty());
    }

    #[test]
    fn missed_bars_are_counted() {
        let mut bars = Bars::default();
        bars.add("most", 20.0, "", Bar::AtMost(20.0, ""));
        bars.add("no bar", 21.0, "", Bar::None);
        assert_eq!(bars.missed(), 0);
        bars.add("most", 21.0, "", Bar::AtMost(20.0, ""));
        bars.add("times", 16.0, "ms", Bar::TimesAtMost(1.5, 10.0));
        assert_eq!(bars.missed(), 2);
    }
}
