//! `Bars`: groups of vertical bars side by side.

use crate::axis::{Axis, number};
use crate::element::{Picture, cut};
use crate::legend::{Legend, Sample};
use crate::style::COLORS;

/// A chart with groups of bars: one bar for each name in each group.
#[derive(Debug, Clone)]
pub struct Bars {
    title: String,
    description: String,
    unit: String,
    width: f64,
    height: f64,
    names: Vec<String>,
    groups: Vec<(String, Vec<f64>)>,
}

const MARGIN: f64 = 20.0;
const TITLE_HEIGHT: f64 = 30.0;
const BOTTOM_MARGIN: f64 = 30.0;

// === impl Bars ===

impl Bars {
    /// A chart without groups. Each group is to have a bar for each of the names; values have that unit.
    pub fn new(title: &str, description: &str, unit: &str, names: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            unit: unit.to_owned(),
            width: 720.0,
            height: 280.0,
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            groups: Vec::new(),
        }
    }

    /// The same with that size.
    #[must_use]
    pub fn size(self, width: f64, height: f64) -> Self {
        Self { width, height, ..self }
    }

    /// The same with a group.
    #[must_use]
    pub fn group(mut self, label: &str, values: Vec<f64>) -> Self {
        self.groups.push((label.to_owned(), values));
        self
    }

    /// The picture.
    pub fn render(&self) -> String {
        let (left, right) = (MARGIN, self.width - MARGIN);
        let mut legend = Legend::default();
        for (color, name) in self.names.iter().enumerate() {
            legend.add(name, Some(color), Sample::Area);
        }
        let legend_height = legend.height(right - left);
        let (top, height) = (TITLE_HEIGHT + legend_height + 26.0, self.height + legend_height);
        let bottom = height - BOTTOM_MARGIN;
        let mut picture = Picture::new(&self.title, &self.description, self.width, height);
        picture.text("strong", 12.0, 20.0, &self.title);
        legend.draw(&mut picture, left, TITLE_HEIGHT, right - left);
        let most = self.groups.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
        let axis = Axis::linear(0.0, most);
        let group_width = (right - left) / count(self.groups.len().max(1));
        for (index, (label, values)) in self.groups.iter().enumerate() {
            let begin = left + count(index) * group_width;
            picture.text("middle", begin + group_width / 2.0, bottom + 20.0, &cut(label, group_width));
            let bar_width = (group_width * 0.8 / count(values.len().max(1))).min(90.0);
            let first = begin + (group_width - bar_width * count(values.len())) / 2.0;
            for (color, value) in values.iter().enumerate() {
                let x = first + count(color) * bar_width;
                let y = bottom - (bottom - top) * axis.place(*value);
                picture.add(format_args!(
                    "<rect class=\"area c{}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
                    color % COLORS,
                    x + 2.0,
                    bar_width - 4.0,
                    bottom - y
                ));
                let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
                picture.text("middle halo", x + bar_width / 2.0, y - 6.0, &format!("{}{unit}", number(*value)));
            }
        }
        picture.path("axis", &format!("M{left:.1} {bottom:.1} H{right:.1}"));
        picture.end()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a small number")]
fn count(number: usize) -> f64 {
    number as f64
}
