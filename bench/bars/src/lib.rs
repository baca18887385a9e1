//! Measures what has a bar, and prints figure, bar and verdict side by side.
//!
//! A measure is repeated in many short rounds, and the figure is that of a round which few others were faster than: what
//! the machine does when it is left alone. Bars that are ratios compare figures of the same run.

#![allow(clippy::print_stdout, reason = "a report is what this is for")]

use std::time::Instant;

/// A table of figures and bars.
#[derive(Debug, Default)]
pub struct Bars {
    rows: Vec<[String; 4]>,
}

/// What a figure is held against.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    /// At most this many.
    AtMost(f64, &'static str),
    /// At least this many.
    AtLeast(f64, &'static str),
    /// At most this many times another figure.
    TimesAtMost(f64, f64),
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
    /// Adds a figure, in the unit given.
    pub fn add(&mut self, measure: impl Into<String>, figure: f64, unit: &str, bar: Bar) {
        let (bar, verdict) = match bar {
            Bar::AtMost(limit, unit) => (format!("at most {limit} {unit}"), Some(figure <= limit)),
            Bar::AtLeast(limit, unit) => (format!("at least {limit} {unit}"), Some(figure >= limit)),
            Bar::TimesAtMost(times, other) => {
                (format!("at most {times} x (now {:.2} x)", figure / other), Some(figure <= times * other))
            }
            Bar::None => (String::new(), None),
        };
        let verdict = verdict.map_or("", |holds| if holds { "holds" } else { "MISSED" });
        self.rows.push([measure.into(), format!("{figure:.1} {unit}"), bar, verdict.to_owned()]);
    }

    /// Prints the table.
    pub fn print(&self, title: &str) {
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
