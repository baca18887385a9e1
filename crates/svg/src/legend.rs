//! A legend: the meaning of the colours.

use crate::element::{Picture, cut, text_width};
use crate::style::COLORS;

/// How something is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sample {
    Area,
    Line,
    Dashed,
    Dotted,
}

/// The entries of a legend, in the order in which they are shown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Legend {
    entries: Vec<(String, Option<usize>, Sample)>,
}

const LINE_HEIGHT: f64 = 20.0;
const SAMPLE_WIDTH: f64 = 20.0;
const GAP: f64 = 18.0;
const NAME_WIDTH_MAX: f64 = 240.0;

// === impl Legend ===

impl Legend {
    /// Adds an entry; without a colour it is drawn as a mark is.
    pub(crate) fn add(&mut self, name: &str, color: Option<usize>, sample: Sample) {
        self.entries.push((cut(name, NAME_WIDTH_MAX), color, sample));
    }

    /// How much space it needs.
    pub(crate) fn height(&self, width: f64) -> f64 {
        let lines = self.places(width).last().map_or(0.0, |(_, line)| line + 1.0);
        lines * LINE_HEIGHT
    }

    pub(crate) fn draw(&self, picture: &mut Picture, left: f64, top: f64, width: f64) {
        for ((name, color, sample), (x, line)) in self.entries.iter().zip(self.places(width)) {
            let (x, y) = (left + x, top + line * LINE_HEIGHT + 10.0);
            let class = color.map_or_else(|| "mark".to_owned(), |color| format!("c{}", color % COLORS));
            match sample {
                Sample::Area => picture.add(format_args!(
                    "<rect class=\"area {class}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"14\" height=\"12\" rx=\"2\"/>",
                    y - 7.0
                )),
                Sample::Line => picture.path(&format!("line {class}"), &format!("M{x:.1} {y:.1} h16")),
                Sample::Dashed => picture.path(&format!("thin dashed {class}"), &format!("M{x:.1} {y:.1} h16")),
                Sample::Dotted => picture.path(&format!("thin dotted {class}"), &format!("M{x:.1} {y:.1} h16")),
            }
            picture.text("", x + SAMPLE_WIDTH, y + 4.0, name);
        }
    }

    /// Where each entry begins, and in which line it is.
    fn places(&self, width: f64) -> Vec<(f64, f64)> {
        let (mut x, mut line) = (0.0, 0.0);
        let mut places = Vec::new();
        for (name, ..) in &self.entries {
            let own = SAMPLE_WIDTH + text_width(name);
            if x > 0.0 && x + own > width {
                (x, line) = (0.0, line + 1.0);
            }
            places.push((x, line));
            x += own + GAP;
        }
        places
    }
}
