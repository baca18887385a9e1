//! What a dump of the flight recorder tells by itself: what happened when, and what had changed before it (FR-3).

use std::collections::BTreeMap;

use anyhow::Result;
use evenkeel::flight::{Flight, FlightEnd, FlightRecord};
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};

use crate::exit::WrongUsage;
use crate::terminal::{Column, Paint, Shade, Table, printable, thousands};

/// What happened in a part of the time.
#[derive(Debug, Clone, Default)]
struct Bucket {
    arrived: u64,
    rejected: u64,
    /// Seat-time by level, and by flow.
    seat_time: BTreeMap<u16, Nanos>,
    by_flow: BTreeMap<u32, Nanos>,
    /// Time that requests waited.
    waiting: Nanos,
    longest_wait: Nanos,
}

/// The time is divided into so many parts.
const PARTS: i64 = 20;
/// So many levels have a column.
const LEVELS_MAX: usize = 4;

/// What happened.
pub(super) fn text(flight: &Flight, paint: Paint) -> Result<String> {
    let header = &flight.header;
    let Some(first) = flight.records.first() else {
        return Ok("The dump has no requests: nothing arrived in its time.\n".to_owned());
    };
    let begin = first.at;
    let end = flight.records.iter().map(end_of).max().unwrap_or(begin).max(begin + 1);
    let is_rejected = |record: &&FlightRecord| matches!(record.end, FlightEnd::Rejected(_));
    let rejected = flight.records.iter().filter(is_rejected).count();
    let mut text = format!(
        "{} requests in {:.1} s, {} rejected, {} seats ({})\n",
        thousands(flight.records.len()),
        seconds(end - begin),
        thousands(rejected),
        header.seats,
        printable(&header.cause)
    );
    if let Some(first) = flight.records.iter().find(is_rejected) {
        let FlightEnd::Rejected(reason) = first.end else { return Ok(text) };
        let at = first.at + first.waited;
        let (level, flow) = (level_name(flight, first.level), flow_name(flight, first.request));
        text += &format!(
            "first rejection after {:.3} s: {} in level {} ({})\n",
            seconds(at - begin),
            printable(flow),
            printable(level),
            reason.as_str()
        );
        let before = header.changes.iter().rfind(|change| change.at <= at);
        text += &match before {
            Some(change) => {
                format!(
                    "last change before it, after {:.3} s: {}\n",
                    seconds(change.at - begin),
                    printable(&change.what)
                )
            }
            None => "nothing was changed before it\n".to_owned(),
        };
    }
    if header.hides_users {
        text += "users are hidden: hashes stand for their names (flightRecorder.users)\n";
    }
    text += &format!("\n{}\n", paint.text(Shade::Strong, "What happened"));
    text += &time_line(flight, begin, end).render();
    let agreement = evenkeel_replay::decide_again(flight)
        .map_err(|problems| WrongUsage(format!("the objects of the dump cannot be read: {problems}")))?;
    text += &format!(
        "\nDecided again under its own objects: {} of {} requests start or are rejected at the same moment{}.\n\n",
        thousands(usize::try_from(agreement.same).unwrap_or(usize::MAX)),
        thousands(usize::try_from(agreement.requests).unwrap_or(usize::MAX)),
        if header.is_complete { "" } else { " (the dump does not know what was there before it began)" }
    );
    Ok(text)
}

/// A row for each part of the time.
fn time_line(flight: &Flight, begin: Nanos, end: Nanos) -> Table {
    let width = (end - begin).div_euclid(PARTS).max(MILLISECOND);
    let mut buckets = vec![Bucket::default(); usize::try_from((end - begin) / width + 1).unwrap_or(1)];
    let of = |at: Nanos| usize::try_from((at - begin) / width).unwrap_or(0);
    for record in &flight.records {
        let last = buckets.len() - 1;
        buckets[of(record.at).min(last)].arrived += 1;
        let started = record.at + record.waited;
        let ended = &mut buckets[of(started).min(last)];
        ended.waiting += record.waited;
        ended.longest_wait = ended.longest_wait.max(record.waited);
        match record.end {
            FlightEnd::Rejected(_) => ended.rejected += 1,
            FlightEnd::Finished { ran } => {
                let seats = Nanos::from(record.work.max_seats());
                for (number, bucket) in
                    buckets.iter_mut().enumerate().skip(of(started)).take(of(started + ran) - of(started) + 1)
                {
                    let from = begin + Nanos::try_from(number).unwrap_or(0) * width;
                    let time = ((started + ran).min(from + width) - started.max(from)).max(0) * seats;
                    *bucket.seat_time.entry(record.level).or_default() += time;
                    *bucket.by_flow.entry(record.request).or_default() += time;
                }
            }
            FlightEnd::Open { .. } => {}
        }
    }
    let mut levels: BTreeMap<u16, Nanos> = BTreeMap::new();
    buckets
        .iter()
        .flat_map(|bucket| &bucket.seat_time)
        .for_each(|(level, time)| *levels.entry(*level).or_default() += time);
    let mut levels: Vec<(u16, Nanos)> = levels.into_iter().collect();
    levels.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    levels.truncate(LEVELS_MAX);
    let mut columns = vec![Column::right("after"), Column::right("arrived"), Column::right("rejected")];
    columns.push(Column::right("longest wait"));
    columns.extend(
        levels.iter().map(|(level, _)| Column::right(format!("seats of {}", printable(level_name(flight, *level))))),
    );
    columns.push(Column::left("most seats"));
    let mut table = Table::new(columns);
    table.ruler();
    for (number, bucket) in buckets.iter().enumerate() {
        let after = Nanos::try_from(number).unwrap_or(0) * width;
        let mut row = vec![format!("{:.2} s", seconds(after)), bucket.arrived.to_string(), bucket.rejected.to_string()];
        row.push(format!("{:.1} ms", seconds(bucket.longest_wait) * 1000.0));
        for (level, _) in &levels {
            let time = bucket.seat_time.get(level).copied().unwrap_or(0);
            row.push(format!("{:.1}", seconds(time) / seconds(width)));
        }
        let most = bucket.by_flow.iter().max_by_key(|(_, time)| **time);
        row.push(most.map_or_else(String::new, |(request, _)| printable(flow_name(flight, *request)).into_owned()));
        table.row(row);
    }
    table
}

fn end_of(record: &FlightRecord) -> Nanos {
    let ran = if let FlightEnd::Finished { ran } = record.end { ran } else { 0 };
    record.at + record.waited + ran
}

fn level_name(flight: &Flight, level: u16) -> &str {
    flight.header.levels.get(usize::from(level)).map_or("", String::as_str)
}

fn flow_name(flight: &Flight, request: u32) -> &str {
    let request = flight.header.requests.get(request as usize);
    request.map_or("", |request| if request.flow.is_empty() { &request.flow_schema } else { &request.flow })
}

#[expect(clippy::cast_precision_loss, reason = "seconds for people")]
fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}
