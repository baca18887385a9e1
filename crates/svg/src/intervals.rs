//! `Intervals`: percentiles as horizontal bars on a logarithmic axis.

use crate::axis::{Axis, number};
use crate::element::{Picture, cut};
use crate::legend::{Legend, Sample};
use crate::style::COLORS;

/// A chart with a bar for each row, from one percentile to another.
#[derive(Debug, Clone)]
pub struct Intervals {
    title: String,
    description: String,
    unit: String,
    width: f64,
    /// The names of what is compared; one if nothing is.
    names: Vec<String>,
    rows: Vec<(String, Vec<Interval>)>,
}

/// The percentiles of one bar.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Where the bar begins.
    pub p50: f64,
    /// A line across the bar.
    pub p90: f64,
    /// Where the bar ends.
    pub p99: f64,
    /// How far the thin line goes.
    pub p999: f64,
}

const LABEL_WIDTH: f64 = 150.0;
const VALUE_WIDTH: f64 = 90.0;
const BAR: f64 = 12.0;
const TITLE_HEIGHT: f64 = 30.0;

// === impl Intervals ===

impl Intervals {
    /// A chart without rows, of what is called so. Values have that unit.
    pub fn new(title: &str, description: &str, unit: &str, names: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            unit: unit.to_owned(),
            width: 720.0,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// The same with a row: a bar for each of the names.
    #[must_use]
    pub fn row(mut self, label: &str, bars: Vec<Interval>) -> Self {
        self.rows.push((label.to_owned(), bars));
        self
    }

    /// The picture.
    pub fn render(&self) -> String {
        let (left, right) = (LABEL_WIDTH, self.width - VALUE_WIDTH);
        let mut legend = Legend::default();
        if self.names.len() > 1 {
            for (color, name) in self.names.iter().enumerate() {
                legend.add(name, Some(color), Sample::Area);
            }
        }
        let top = TITLE_HEIGHT + legend.height(right - left) + 26.0;
        let row_height = self.rows.iter().map(|(_, bars)| bars.len()).max().map_or(1.0, count) * (BAR + 4.0) + 10.0;
        let bottom = top + count(self.rows.len()) * row_height;
        let mut picture = Picture::new(&self.title, &self.description, self.width, bottom + 34.0);
        picture.text("strong", 12.0, 20.0, &self.title);
        legend.draw(&mut picture, left, TITLE_HEIGHT, right - left);
        picture.text("faint", left, top - 8.0, "bar: p50 to p99, with p90 inside; line: to p99.9");
        picture.text("faint end", self.width - 12.0, top - 8.0, "p99");
        let axis = self.axis();
        for (place, label) in axis.ticks(6) {
            let x = left + (right - left) * place;
            picture.path("grid", &format!("M{x:.1} {top:.1} V{bottom:.1}"));
            picture.text("faint middle", x, bottom + 18.0, &label);
        }
        for (index, (label, bars)) in self.rows.iter().enumerate() {
            let y = top + count(index) * row_height + 5.0;
            let middle = y + count(bars.len()) * (BAR + 4.0) / 2.0;
            picture.text("end", left - 10.0, middle + 3.0, &cut(label, LABEL_WIDTH - 20.0));
            for (color, bar) in bars.iter().enumerate() {
                let y = y + count(color) * (BAR + 4.0);
                self.draw_bar(&mut picture, &axis, (left, right), y, color, *bar);
            }
        }
        picture.path("axis", &format!("M{left:.1} {bottom:.1} H{right:.1}"));
        picture.end()
    }

    fn draw_bar(
        &self,
        picture: &mut Picture,
        axis: &Axis,
        (left, right): (f64, f64),
        y: f64,
        color: usize,
        bar: Interval,
    ) {
        let x = |value: f64| left + (right - left) * axis.place(value);
        let (from, to) = (x(bar.p50), x(bar.p99));
        let class = color % COLORS;
        picture.path(&format!("line c{class}"), &format!("M{to:.1} {:.1} H{:.1}", y + BAR / 2.0, x(bar.p999)));
        picture.add(format_args!(
            "<rect class=\"area c{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\" rx=\"2\"/>",
            (to - from).max(3.0)
        ));
        picture.path("axis", &format!("M{:.1} {y:.1} v{BAR}", x(bar.p90)));
        let p99 = format!("{} {}", number(rounded(bar.p99)), self.unit);
        picture.text("end", self.width - 12.0, y + BAR - 2.0, &p99);
    }

    fn axis(&self) -> Axis {
        let bars = || self.rows.iter().flat_map(|(_, bars)| bars);
        let least = bars().map(|bar| bar.p50).filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
        let most = bars().map(|bar| bar.p999.max(bar.p99)).fold(0.0, f64::max);
        // A time of zero has no place on such an axis; a hundredth of the longest is near enough.
        let least = if least.is_finite() { least.max(most / 1e5) } else { most / 100.0 };
        Axis::logarithmic(least.max(0.001), most).unit(&self.unit)
    }
}

/// Three digits are enough.
fn rounded(value: f64) -> f64 {
    match value {
        value if value >= 100.0 => value.round(),
        value if value >= 10.0 => (value * 10.0).round() / 10.0,
        value => (value * 100.0).round() / 100.0,
    }
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn count(number: usize) -> f64 {
    number as f64
}
