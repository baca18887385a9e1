//! The pictures of `docs/modes.md`, drawn from the same simulations as the figures.
//!
//! `cargo bench -p evenkeel-modes-bench -- --svg` writes them to `docs/images`.

use std::fmt::Write;
use std::{fs, io};

use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::time::{MILLISECOND, Nanos};

use crate::{borrowing, queuing};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images");

/// Light and dark, with the fonts of the system.
const STYLE: &str = "  <style>
    text { font: 14px system-ui, sans-serif; fill: #1f2328; }
    .title { font-weight: 600; font-size: 16px; }
    .small { font-size: 12px; fill: #59636e; }
    .middle { text-anchor: middle; }
    .end { text-anchor: end; }
    .axis { fill: none; stroke: #59636e; }
    .grid { fill: none; stroke: #d1d9e0; }
    .mark { fill: none; stroke: #59636e; stroke-dasharray: 4 3; }
    .plain { fill: #8c959f; }
    .kubernetes { fill: #bf8700; }
    .evenkeel { fill: #0969da; }
    .line { fill: none; stroke-width: 2.5; stroke-linejoin: round; }
    .line.kubernetes { stroke: #bf8700; fill: none; }
    .line.evenkeel { stroke: #0969da; fill: none; }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc; }
      .small { fill: #9198a1; }
      .axis, .mark { stroke: #9198a1; }
      .grid { stroke: #3d444d; }
      .plain { fill: #767e88; }
      .kubernetes { fill: #d29922; }
      .evenkeel { fill: #4493f8; }
      .line.kubernetes { stroke: #d29922; fill: none; }
      .line.evenkeel { stroke: #4493f8; fill: none; }
    }
  </style>
";

/// Where the axes are.
const LEFT: f64 = 70.0;
const RIGHT: f64 = 970.0;
const TOP: f64 = 90.0;
const BOTTOM: f64 = 330.0;

/// A picture under way.
struct Picture {
    svg: String,
    /// The value at the upper end of the vertical axis.
    top: f64,
}

/// Runs the simulations and writes the pictures.
pub(crate) fn write_all() -> io::Result<()> {
    fs::write(format!("{FOLDER}/queuing.svg"), queuing_picture())?;
    fs::write(format!("{FOLDER}/borrowing.svg"), borrowing_picture())
}

fn queuing_picture() -> String {
    const WIDTH: f64 = 70.0;
    let groups = queuing::small_flows_p99();
    let described = groups.iter().map(|(greedy, figures)| {
        let figures: Vec<String> =
            figures.iter().map(|(name, figure)| format!("{name} {}", milliseconds(*figure))).collect();
        format!("Beside {greedy}: {}.", figures.join(", "))
    });
    let mut picture = Picture::new(
        "Response time of small clients beside greedy ones (p99)",
        &described.collect::<Vec<_>>().join(" "),
        300.0,
    );
    picture.axis();
    let classes = ["plain", "kubernetes", "evenkeel"];
    for (place, (greedy, figures)) in (0_u32..).zip(&groups) {
        let middle = LEFT + (RIGHT - LEFT) * (f64::from(place) + 0.5) / 3.0;
        for ((bar, (_, figure)), class) in (0_u32..).zip(figures).zip(classes) {
            let x = middle + (f64::from(bar) - 1.5) * (WIDTH + 8.0) + 4.0;
            let y = picture.y(*figure);
            picture.add(format_args!(
                r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{WIDTH}" height="{:.1}"/>"#,
                BOTTOM - y
            ));
            picture.text("middle", x + WIDTH / 2.0, y - 6.0, &milliseconds(*figure));
        }
        let clients = if *greedy == 1 { "client" } else { "clients" };
        picture.text("middle", middle, BOTTOM + 24.0, &format!("beside {greedy} greedy {clients}"));
    }
    let mut x = LEFT;
    for ((name, _), class) in groups[0].1.iter().zip(classes) {
        x = picture.legend(x, class, name);
    }
    picture.end()
}

fn borrowing_picture() -> String {
    const BEFORE: Nanos = 1000 * MILLISECOND;
    const AFTER: Nanos = 12_000 * MILLISECOND;
    let series = [("kubernetes", Borrowing::Periodic), ("evenkeel", Borrowing::Immediate)]
        .map(|(class, mode)| (class, borrowing::seats_around_burst(mode, BEFORE, AFTER)));
    let nominal = borrowing::nominal_of_burst();
    let early = series.each_ref().map(|(_, seats)| seats_at(seats, MILLISECOND));
    let later = seats_at(&series[0].1, AFTER);
    let description = format!(
        "A level with {nominal} seats of its own gets a burst of 400 requests. One millisecond later it uses {} seats with periodic \
         borrowing and {} with immediate borrowing. With periodic borrowing it uses {later} seats after the next division.",
        early[0], early[1],
    );
    let mut picture =
        Picture::new("Seats in use by a priority level after a burst, on an idle server", &description, 400.0);
    picture.grid(100, "seats");
    let x = |at: Nanos| LEFT + (RIGHT - LEFT) * seconds(at + BEFORE) / seconds(BEFORE + AFTER);
    for second in (0..=12).step_by(2) {
        picture.text("small middle", x(second * 1000 * MILLISECOND), BOTTOM + 20.0, &format!("{second} s"));
    }
    picture.text("small end", RIGHT, BOTTOM + 38.0, "time since the burst");
    let y = picture.y(seats(nominal));
    picture.add(format_args!(r#"<path class="mark" d="M{LEFT} {y:.1} H{RIGHT}"/>"#));
    picture.text("small", x(2000 * MILLISECOND), y - 6.0, &format!("nominal: {nominal}"));
    for (class, points) in &series {
        let mut path = String::new();
        for (place, (at, used)) in points.iter().enumerate() {
            let (x, y) = (x(*at), picture.y(seats(*used)));
            let step = if place == 0 { format!("M{x:.1} {y:.1}") } else { format!(" H{x:.1} V{y:.1}") };
            path += &step;
        }
        picture.add(format_args!(r#"<path class="line {class}" d="{path}"/>"#));
    }
    picture.text(
        "",
        x(2000 * MILLISECOND),
        picture.y(seats(early[0])) - 10.0,
        &format!("periodic: {} seats", early[0]),
    );
    picture.text(
        "",
        x(2000 * MILLISECOND),
        picture.y(seats(early[1])) + 20.0,
        &format!("immediate: {} seats", early[1]),
    );
    let next = picture.legend(LEFT, "kubernetes", "periodic borrowing, as in Kubernetes");
    picture.legend(next, "evenkeel", "immediate borrowing");
    picture.end()
}

/// The last value that is not later than that.
fn seats_at(points: &[(Nanos, i64)], at: Nanos) -> i64 {
    points.iter().take_while(|(then, _)| *then <= at).last().map_or(0, |(_, seats)| *seats)
}

fn milliseconds(figure: f64) -> String {
    if figure < 100.0 { format!("{figure:.1} ms") } else { format!("{figure:.0} ms") }
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn seconds(span: Nanos) -> f64 {
    span as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn seats(number: i64) -> f64 {
    number as f64
}

// === impl Picture ===

impl Picture {
    fn new(title: &str, description: &str, top: f64) -> Self {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1000 380\" role=\"img\" aria-labelledby=\"t d\">\n  \
             <title id=\"t\">{title}</title>\n  <desc id=\"d\">{description}</desc>\n{STYLE}"
        );
        let mut picture = Self { svg, top };
        picture.text("title", 20.0, 28.0, title);
        picture
    }

    /// The height of a value.
    fn y(&self, value: f64) -> f64 {
        BOTTOM - (BOTTOM - TOP) * value / self.top
    }

    /// The horizontal axis.
    fn axis(&mut self) {
        self.add(format_args!(r#"<path class="axis" d="M{LEFT} {BOTTOM} H{RIGHT}"/>"#));
    }

    /// The horizontal axis, and a line at each step above it.
    fn grid(&mut self, step: u32, unit: &str) {
        self.axis();
        self.text("small end", LEFT - 8.0, BOTTOM + 4.0, "0");
        let mut value = step;
        while f64::from(value) <= self.top {
            let y = self.y(f64::from(value));
            self.add(format_args!(r#"<path class="grid" d="M{LEFT} {y:.1} H{RIGHT}"/>"#));
            self.text("small end", LEFT - 8.0, y + 4.0, &format!("{value} {unit}"));
            value += step;
        }
    }

    /// An entry of the legend; where the next one begins.
    fn legend(&mut self, x: f64, class: &str, name: &str) -> f64 {
        self.add(format_args!(r#"<rect class="{class}" x="{x}" y="46" width="14" height="14" rx="2"/>"#));
        self.text("", x + 20.0, 58.0, name);
        x + 50.0 + 7.5 * f64::from(u32::try_from(name.len()).unwrap_or_default())
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let class = if class.is_empty() { String::new() } else { format!(r#" class="{class}""#) };
        self.add(format_args!(r#"<text{class} x="{x:.1}" y="{y:.1}">{text}</text>"#));
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        // Writing to a text cannot fail.
        let _ = writeln!(self.svg, "  {element}");
    }

    fn end(self) -> String {
        self.svg + "</svg>\n"
    }
}
