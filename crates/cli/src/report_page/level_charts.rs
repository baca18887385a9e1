//! Pictures of levels over time.

use evenkeel_engine::time::Nanos;
use evenkeel_sim::{Bucket, LevelRecord, REASONS};
use evenkeel_svg::{Area, Axis, Chart};

/// A colour for each reason.
const REASON_COLORS: [usize; REASONS.len()] = [1, 5, 4, 3, 2];

/// The levels of a run, and how long it was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levels<'a> {
    /// The levels.
    pub(crate) records: &'a [LevelRecord],
    /// How long the run was.
    pub(crate) seconds: f64,
}

/// The seats in use of all levels, on top of each other; `None` if there is only one.
pub(crate) fn seats(run: Levels<'_>, most: f64) -> Option<String> {
    let levels = used(run);
    if levels.len() < 2 {
        return None;
    }
    let areas = levels.iter().enumerate().map(|(color, level)| Area {
        name: level.name().to_owned(),
        color,
        heights: means(level, |bucket| bucket.seat_time),
    });
    let description = "The seats that each level uses over time, stacked.";
    let chart = over_time("Seats in use", description, run, most, "seats");
    Some(chart.areas(edges(&levels), areas.collect()).render())
}

/// A level: its seats in use, with its nominal seats, its floor and its limit.
pub(crate) fn level(run: Levels<'_>, level: &LevelRecord) -> String {
    let heights = means(level, |bucket| bucket.seat_time);
    let limits = |of: fn(&Bucket) -> i64| steps(level, of);
    // The limit of immediate borrowing may be far above what is ever used.
    let shown = level.series().buckets().iter().map(|bucket| bucket.seats_max.max(bucket.nominal)).max();
    let most = float(shown.unwrap_or(1).max(1).into()) * 1.1;
    let in_use = Area { name: "in use".to_owned(), color: 0, heights };
    let description = format!("The seats that the level {} uses over time, and how many it has.", level.name());
    over_time(&format!("Seats of {}", level.name()), &description, run, most, "seats")
        .areas(edges(&[level]), vec![in_use])
        .dashed("nominal", limits(|bucket| bucket.nominal))
        .dotted("floor", limits(|bucket| bucket.floor))
        .steps(evenkeel_svg::Line { name: "limit".to_owned(), color: 1, points: limits(|bucket| bucket.limit) })
        .render()
}

/// The requests that wait, of all levels on top of each other; `None` if none ever waited.
pub(crate) fn waiting(run: Levels<'_>, most: f64) -> Option<String> {
    if most <= 0.0 {
        return None;
    }
    let levels = used(run);
    let areas = levels.iter().enumerate().map(|(color, level)| Area {
        name: level.name().to_owned(),
        color,
        heights: means(level, |bucket| bucket.waiting_time),
    });
    let description = "The requests of each level that wait over time, stacked.";
    let chart = over_time("Waiting requests", description, run, most, "requests");
    Some(chart.areas(edges(&levels), areas.collect()).render())
}

/// Rejections by reason; `None` if there were none.
pub(crate) fn rejections(run: Levels<'_>, most: f64) -> Option<String> {
    let levels = used(run);
    let areas = REASONS.iter().enumerate().map(|(reason, name)| {
        let own: Vec<Vec<f64>> = levels.iter().map(|level| rates(level, |bucket| bucket.rejected[reason])).collect();
        let count = own.iter().map(Vec::len).max().unwrap_or(0);
        let sum = |index: usize| own.iter().filter_map(|rates| rates.get(index)).sum();
        Area { name: name.as_str().to_owned(), color: REASON_COLORS[reason], heights: (0..count).map(sum).collect() }
    });
    let areas: Vec<_> = areas.filter(|area| area.heights.iter().any(|height| *height > 0.0)).collect();
    let description = "Rejected requests a second over time, by reason, stacked.";
    let chart = || over_time("Rejected requests a second", description, run, most, "per second");
    (!areas.is_empty()).then(|| chart().areas(edges(&levels), areas).render())
}

/// The most that the stacked seats of a run reach.
pub(crate) fn seats_max(run: Levels<'_>) -> f64 {
    stacked_max(run, |level| means(level, |bucket| bucket.seat_time))
}

/// The most that the stacked waiting requests of a run reach.
pub(crate) fn waiting_max(run: Levels<'_>) -> f64 {
    stacked_max(run, |level| means(level, |bucket| bucket.waiting_time))
}

/// The most that the stacked rejections of a run reach.
pub(crate) fn rejections_max(run: Levels<'_>) -> f64 {
    stacked_max(run, |level| rates(level, |bucket| bucket.rejected.iter().sum()))
}

/// The levels in which there were requests, by name.
pub(crate) fn used(run: Levels<'_>) -> Vec<&LevelRecord> {
    let is_used = |level: &&LevelRecord| {
        let buckets = level.series().buckets();
        buckets.iter().any(|bucket| bucket.seats_max > 0 || bucket.rejected.iter().any(|count| *count > 0))
    };
    let mut levels: Vec<_> = run.records.iter().filter(is_used).collect();
    levels.sort_by_key(|level| level.name().to_owned());
    levels
}

fn over_time(title: &str, description: &str, run: Levels<'_>, most: f64, unit: &str) -> Chart {
    Chart::new(title, description)
        .x(Axis::linear(0.0, run.seconds).unit("s"))
        .y(Axis::linear(0.0, most.max(1.0)).title(unit))
}

fn stacked_max(run: Levels<'_>, heights: impl Fn(&LevelRecord) -> Vec<f64>) -> f64 {
    let own: Vec<Vec<f64>> = used(run).into_iter().map(heights).collect();
    let count = own.iter().map(Vec::len).max().unwrap_or(0);
    let sums = (0..count).map(|index| own.iter().filter_map(|heights| heights.get(index)).sum::<f64>());
    sums.fold(0.0, f64::max)
}

/// The longest series of edges: levels that went early have fewer.
fn edges(levels: &[&LevelRecord]) -> Vec<f64> {
    let longest = levels.iter().map(|level| level.series().edges()).max_by_key(Vec::len).unwrap_or_default();
    longest.into_iter().map(seconds).collect()
}

/// Averages over each bucket.
fn means(level: &LevelRecord, of: impl Fn(&Bucket) -> i128) -> Vec<f64> {
    let edges = level.series().edges();
    let spans = edges.windows(2).map(|pair| float(i128::from((pair[1] - pair[0]).max(1))));
    level.series().buckets().iter().zip(spans).map(|(bucket, span)| float(of(bucket)) / span).collect()
}

/// How often something happened in a second, in each bucket.
fn rates(level: &LevelRecord, of: impl Fn(&Bucket) -> u64) -> Vec<f64> {
    means(level, |bucket| i128::from(of(bucket)) * 1_000_000_000)
}

/// A point where a number of seats changes, and one at the end.
fn steps(level: &LevelRecord, of: fn(&Bucket) -> i64) -> Vec<(f64, f64)> {
    let edges = level.series().edges();
    let mut changes: Vec<_> = edges.iter().copied().zip(level.series().buckets().iter().map(of)).collect();
    let end = edges.last().copied().zip(changes.last().map(|(_, seats)| *seats));
    changes.dedup_by_key(|(_, seats)| *seats);
    changes.into_iter().chain(end).map(|(at, seats)| (seconds(at), float(seats.into()))).collect()
}

fn seconds(span: Nanos) -> f64 {
    float(span.into()) / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "a place in a picture")]
fn float(number: i128) -> f64 {
    number as f64
}
