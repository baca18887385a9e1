//! Limit and goodput of all contenders over time, for the documentation.

use std::fs;
use std::io;
use std::path::Path;

use evenkeel_svg::{Axis, Chart, Line};

use super::course::{CAPACITY, Outcome, course};

/// The width of a bucket of the goodput, in seconds.
const BUCKET: f64 = 1.0;
/// Envoy's limit may be anything; what is above is not drawn.
const LIMIT_MAX: f64 = 120.0;

pub(super) fn write(folder: &Path, outcomes: &[Outcome]) -> io::Result<()> {
    let end = f64::from(course().iter().map(|part| part.seconds).sum::<u32>());
    let description = "Requests at half of what the service can do, then three times as many; then the service has half of its slots, all of them \
                       again, and three times as many for requests that take three times as long.";
    let time = || Axis::linear(0.0, end).unit("s");
    let mut goodput = Chart::new("Good responses per second", description)
        .x(time())
        .y(Axis::linear(0.0, 1.2 * CAPACITY).title("within half a second"))
        .dashed("at best", best());
    let mut limit = Chart::new("The limit", description)
        .x(time())
        .y(Axis::linear(0.0, LIMIT_MAX).title("requests at a time"))
        .dashed("right", right());
    for (color, outcome) in outcomes.iter().enumerate() {
        let name = outcome.contender.name().to_owned();
        let mut points = Vec::new();
        let mut from = 0.0;
        while from < end {
            points.push((from, outcome.goodput(from, from + BUCKET)));
            from += BUCKET;
        }
        goodput = goodput.steps(Line { name: name.clone(), color, points });
        if !outcome.limits.is_empty() {
            let points = outcome.limits.iter().map(|(at, limit)| (*at, limit.min(LIMIT_MAX))).collect();
            limit = limit.steps(Line { name, color, points });
        }
    }
    fs::write(folder.join("limit-goodput.svg"), goodput.render())?;
    fs::write(folder.join("limit-seats.svg"), limit.render())
}

/// What the service can do, or would if as many asked.
fn best() -> Vec<(f64, f64)> {
    steps(|part| CAPACITY * part.best.min(part.load))
}

fn right() -> Vec<(f64, f64)> {
    steps(|part| f64::from(part.slots))
}

fn steps(value: impl Fn(&super::course::Part) -> f64) -> Vec<(f64, f64)> {
    let (mut at, mut points) = (0.0, Vec::new());
    for part in &course() {
        points.push((at, value(part)));
        at += f64::from(part.seconds);
        points.push((at, value(part)));
    }
    points
}
