//! The pictures of `docs/modes.md`, drawn from the same simulations as the figures.
//!
//! `cargo bench -p evenkeel-modes-bench -- --svg` writes them to `docs/images`.

use std::{fs, io};

use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::time::{MILLISECOND, Nanos};
use evenkeel_svg::{Axis, Bars, Chart, Line};

use crate::{borrowing, queuing};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images");

/// Runs the simulations and writes the pictures.
pub(crate) fn write_all() -> io::Result<()> {
    fs::write(format!("{FOLDER}/queuing.svg"), queuing_picture())?;
    fs::write(format!("{FOLDER}/borrowing.svg"), borrowing_picture())
}

fn queuing_picture() -> String {
    let groups = queuing::small_flows_p99();
    let described = groups.iter().map(|(greedy, figures)| {
        let figures: Vec<String> = figures.iter().map(|(name, figure)| format!("{name} {figure:.1} ms")).collect();
        format!("Beside {greedy}: {}.", figures.join(", "))
    });
    let description = described.collect::<Vec<_>>().join(" ");
    let names: Vec<&str> = groups[0].1.iter().map(|(name, _)| *name).collect();
    let bars = Bars::new("Response time of small clients beside greedy ones (p99)", &description, "ms", &names);
    let all = groups.iter().fold(bars, |bars, (greedy, figures)| {
        let clients = if *greedy == 1 { "client" } else { "clients" };
        let label = format!("beside {greedy} greedy {clients}");
        bars.group(&label, figures.iter().map(|(_, figure)| rounded(*figure)).collect())
    });
    all.render()
}

fn borrowing_picture() -> String {
    const BEFORE: Nanos = 1000 * MILLISECOND;
    const AFTER: Nanos = 12_000 * MILLISECOND;
    let [periodic, immediate] =
        [Borrowing::Periodic, Borrowing::Immediate].map(|mode| borrowing::seats_around_burst(mode, BEFORE, AFTER));
    let nominal = borrowing::nominal_of_burst();
    let description = format!(
        "A level with {nominal} seats of its own gets a burst of 400 requests. One millisecond later it uses {} seats with periodic \
         borrowing and {} with immediate borrowing. With periodic borrowing it uses {} seats after the next division.",
        seats_at(&periodic, MILLISECOND),
        seats_at(&immediate, MILLISECOND),
        seats_at(&periodic, AFTER),
    );
    let line = |name: &str, color, points: &[(Nanos, i64)]| Line {
        name: name.to_owned(),
        color,
        points: points.iter().map(|(at, used)| (seconds(*at), seats(*used))).collect(),
    };
    Chart::new("Seats in use by a priority level after a burst, on an idle server", &description)
        .x(Axis::linear(-seconds(BEFORE), seconds(AFTER)).unit("s").title("time since the burst"))
        .y(Axis::linear(0.0, 420.0).title("seats"))
        .dashed(
            &format!("nominal: {nominal}"),
            vec![(-seconds(BEFORE), seats(nominal)), (seconds(AFTER), seats(nominal))],
        )
        .steps(line("periodic borrowing", 1, &periodic))
        .steps(line("immediate borrowing", 0, &immediate))
        .render()
}

/// Three digits are enough for a label.
fn rounded(figure: f64) -> f64 {
    if figure < 100.0 { (figure * 10.0).round() / 10.0 } else { figure.round() }
}

/// The last value that is not later than that.
fn seats_at(points: &[(Nanos, i64)], at: Nanos) -> i64 {
    points.iter().take_while(|(then, _)| *then <= at).last().map_or(0, |(_, seats)| *seats)
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn seconds(span: Nanos) -> f64 {
    span as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn seats(number: i64) -> f64 {
    number as f64
}
