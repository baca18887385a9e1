//! `Chart`: lines and areas over two axes.

use crate::axis::Axis;
use crate::element::Picture;
use crate::legend::{Legend, Sample};
use crate::style::COLORS;

/// A chart with two axes. What is added first is drawn first.
#[derive(Debug, Clone)]
pub struct Chart {
    title: String,
    description: String,
    width: f64,
    height: f64,
    x: Axis,
    y: Axis,
    layers: Vec<Layer>,
    legend: Legend,
}

/// Points that are joined.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The name in the legend.
    pub name: String,
    /// The number of its colour.
    pub color: usize,
    /// The points, from left to right.
    pub points: Vec<(f64, f64)>,
}

/// An area that is stacked on others.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Area {
    /// The name in the legend.
    pub name: String,
    /// The number of its colour.
    pub color: usize,
    /// Its height from each edge to the next.
    pub heights: Vec<f64>,
}

#[derive(Debug, Clone)]
enum Layer {
    Path { class: String, points: Vec<(f64, f64)>, has_steps: bool },
    Stack { edges: Vec<f64>, areas: Vec<(usize, Vec<f64>)> },
}

const LEFT: f64 = 58.0;
const RIGHT_MARGIN: f64 = 16.0;
const TITLE_HEIGHT: f64 = 30.0;
const BOTTOM_MARGIN: f64 = 28.0;
/// Above the first tick of the vertical axis.
const CAPTION_HEIGHT: f64 = 16.0;

// === impl Chart ===

impl Chart {
    /// A chart without content. The description is for those who cannot see the picture.
    pub fn new(title: &str, description: &str) -> Self {
        let unit = Axis::linear(0.0, 1.0);
        Self {
            title: title.to_owned(),
            description: description.to_owned(),
            width: 720.0,
            height: 280.0,
            x: unit.clone(),
            y: unit,
            layers: Vec::new(),
            legend: Legend::default(),
        }
    }

    /// The same with that size.
    #[must_use]
    pub fn size(self, width: f64, height: f64) -> Self {
        Self { width, height, ..self }
    }

    /// The same with that horizontal axis.
    #[must_use]
    pub fn x(self, x: Axis) -> Self {
        Self { x, ..self }
    }

    /// The same with that vertical axis.
    #[must_use]
    pub fn y(self, y: Axis) -> Self {
        Self { y, ..self }
    }

    /// The same with a line whose value stays until the next point.
    #[must_use]
    pub fn steps(mut self, line: Line) -> Self {
        self.legend.add(&line.name, Some(line.color), Sample::Line);
        let class = format!("line c{}", line.color % COLORS);
        self.layers.push(Layer::Path { class, points: line.points, has_steps: true });
        self
    }

    /// The same with a line from point to point.
    #[must_use]
    pub fn line(mut self, line: Line) -> Self {
        self.legend.add(&line.name, Some(line.color), Sample::Line);
        let class = format!("line c{}", line.color % COLORS);
        self.layers.push(Layer::Path { class, points: line.points, has_steps: false });
        self
    }

    /// The same with a dashed line, which stays until the next point: a limit, say.
    #[must_use]
    pub fn dashed(mut self, name: &str, points: Vec<(f64, f64)>) -> Self {
        self.legend.add(name, None, Sample::Dashed);
        self.layers.push(Layer::Path { class: "mark dashed".to_owned(), points, has_steps: true });
        self
    }

    /// The same with a dotted line, which stays until the next point.
    #[must_use]
    pub fn dotted(mut self, name: &str, points: Vec<(f64, f64)>) -> Self {
        self.legend.add(name, None, Sample::Dotted);
        self.layers.push(Layer::Path { class: "mark dotted".to_owned(), points, has_steps: true });
        self
    }

    /// The same with areas on top of each other. There is one edge more than there are heights.
    #[must_use]
    pub fn areas(mut self, edges: Vec<f64>, areas: Vec<Area>) -> Self {
        for area in &areas {
            self.legend.add(&area.name, Some(area.color), Sample::Area);
        }
        let areas = areas.into_iter().map(|area| (area.color, area.heights)).collect();
        self.layers.push(Layer::Stack { edges, areas });
        self
    }

    /// The picture.
    pub fn render(&self) -> String {
        let (left, right) = (LEFT, self.width - RIGHT_MARGIN);
        let legend_height = self.legend.height(right - left);
        let caption_height = if self.y.caption().is_empty() { 0.0 } else { CAPTION_HEIGHT };
        let top = TITLE_HEIGHT + legend_height + caption_height + 8.0;
        let height = self.height + legend_height;
        let bottom = height - BOTTOM_MARGIN;
        let mut picture = Picture::new(&self.title, &self.description, self.width, height);
        picture.text("strong", 12.0, 20.0, &self.title);
        self.legend.draw(&mut picture, left, TITLE_HEIGHT, right - left);
        let frame = Frame { left, right, top, bottom, x: &self.x, y: &self.y };
        frame.draw_grid(&mut picture);
        for layer in &self.layers {
            match layer {
                Layer::Path { class, points, has_steps } => picture.path(class, &frame.path(points, *has_steps)),
                Layer::Stack { edges, areas } => frame.draw_stack(&mut picture, edges, areas),
            }
        }
        picture.path("axis", &format!("M{left:.1} {bottom:.1} H{right:.1}"));
        picture.end()
    }
}

/// Where the axes are in a picture.
pub(crate) struct Frame<'a> {
    pub(crate) left: f64,
    pub(crate) right: f64,
    pub(crate) top: f64,
    pub(crate) bottom: f64,
    pub(crate) x: &'a Axis,
    pub(crate) y: &'a Axis,
}

// === impl Frame ===

impl Frame<'_> {
    fn x(&self, value: f64) -> f64 {
        self.left + (self.right - self.left) * self.x.place(value)
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * self.y.place(value)
    }

    fn draw_grid(&self, picture: &mut Picture) {
        for (place, label) in self.y.ticks(6) {
            let y = self.bottom - (self.bottom - self.top) * place;
            picture.path("grid", &format!("M{:.1} {y:.1} H{:.1}", self.left, self.right));
            picture.text("faint end", self.left - 8.0, y + 4.0, &label);
        }
        if !self.y.caption().is_empty() {
            picture.text("faint", 12.0, self.top - CAPTION_HEIGHT, self.y.caption());
        }
        for (place, label) in self.x.ticks(8) {
            let x = self.left + (self.right - self.left) * place;
            picture.path("axis", &format!("M{x:.1} {:.1} v4", self.bottom));
            let class = if place > 0.98 { "faint end" } else { "faint middle" };
            picture.text(class, x, self.bottom + 18.0, &label);
        }
    }

    fn path(&self, points: &[(f64, f64)], has_steps: bool) -> String {
        let mut path = String::new();
        for (place, (x, y)) in points.iter().enumerate() {
            let (x, y) = (self.x(*x), self.y(*y));
            path += &match (place, has_steps) {
                (0, _) => format!("M{x:.1} {y:.1}"),
                (_, true) => format!(" H{x:.1} V{y:.1}"),
                (_, false) => format!(" L{x:.1} {y:.1}"),
            };
        }
        path
    }

    fn draw_stack(&self, picture: &mut Picture, edges: &[f64], areas: &[(usize, Vec<f64>)]) {
        let count = edges.len().saturating_sub(1);
        let mut floor = vec![0.0; count];
        for (color, heights) in areas {
            let height = |index: usize| heights.get(index).copied().unwrap_or(0.0);
            let ceiling: Vec<f64> = floor.iter().enumerate().map(|(index, floor)| floor + height(index)).collect();
            // What is empty needs no path.
            if ceiling.iter().zip(&floor).any(|(ceiling, floor)| ceiling > floor) {
                let mut path = String::new();
                for (index, value) in ceiling.iter().enumerate() {
                    let start = if index == 0 { "M" } else { "L" };
                    let (from, to, y) = (self.x(edges[index]), self.x(edges[index + 1]), self.y(*value));
                    path += &format!("{start}{from:.1} {y:.1} H{to:.1} ");
                }
                for (index, value) in floor.iter().enumerate().rev() {
                    let (from, to, y) = (self.x(edges[index + 1]), self.x(edges[index]), self.y(*value));
                    path += &format!("L{from:.1} {y:.1} H{to:.1} ");
                }
                path.push('Z');
                picture.path(&format!("area c{}", color % COLORS), &path);
            }
            floor = ceiling;
        }
    }
}
