//! `Incident`: the report on a dump of the flight recorder: a time line, which flow delayed which, and the change before it
//! (FR-3).

mod delays;
mod spans;
mod time_line;
mod usage;

use evenkeel::events::CostKind;
use evenkeel::flight::{Flight, FlightEnd};
use evenkeel_api::decode::Problems;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;

use crate::decide_again::{Agreement, decide_again};
use spans::Spans;

/// The report on the time of a dump. Times count from its first request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Incident {
    /// How long it took, in nanoseconds.
    pub length: Nanos,
    /// How many requests arrived.
    pub requests: u64,
    /// How many of them were rejected.
    pub rejected: u64,
    /// The rejection that came first.
    pub first_rejection: Option<FirstRejection>,
    /// How long a part of the time line is, in nanoseconds.
    pub part_length: Nanos,
    /// The time line.
    pub parts: Vec<IncidentPart>,
    /// The levels whose seats were taken for longest, as the time line has them.
    pub levels: Vec<String>,
    /// The flows that had seats for longest, with what their requests cost.
    pub usage: Vec<Usage>,
    /// The flows that waited for longest, and who had the seats meanwhile.
    pub delays: Vec<Delay>,
    /// Whether the objects of the dump decide the same again.
    pub agreement: Agreement,
}

/// The first request that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FirstRejection {
    /// The time of the rejection.
    pub after: Nanos,
    /// Its flow, or its flow schema.
    pub flow: String,
    /// Its level.
    pub level: String,
    /// The reason of the rejection.
    pub reason: Rejection,
    /// The last change before it: when, and what.
    pub change: Option<(Nanos, String)>,
}

/// A part of the time.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct IncidentPart {
    /// When it begins.
    pub after: Nanos,
    /// The requests that arrived.
    pub arrived: u64,
    /// The requests that were rejected.
    pub rejected: u64,
    /// The longest wait that ended.
    pub longest_wait: Nanos,
    /// The seats that were taken, by the levels of the incident: a mean.
    pub seats: Vec<f64>,
    /// The flow that had most seats.
    pub most_seats: Option<String>,
}

/// What a flow used in a level.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Usage {
    /// The flow.
    pub flow: String,
    /// Its level.
    pub level: String,
    /// Its requests, those that were rejected included.
    pub requests: u64,
    /// The seats that they had, times seconds.
    pub seat_seconds: f64,
    /// What they cost, in the units that counted; nothing where no costs count.
    pub costs: Vec<(CostKind, f64)>,
}

/// A flow that waited, and those that had the seats of its level meanwhile.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Delay {
    /// The flow that waited.
    pub flow: String,
    /// Its level.
    pub level: String,
    /// How long its requests waited together.
    pub waited: Nanos,
    /// The flows that had the seats, with their parts of that time, the longest first. The rest of the seats belonged to others,
    /// or was free.
    pub by: Vec<(String, Nanos)>,
}

// === impl Incident ===

impl Incident {
    /// The report on a dump. `None` if there are no requests; fails if the objects of the dump cannot be read.
    pub fn new(flight: &Flight) -> Result<Option<Self>, Problems> {
        let Some(spans) = Spans::new(flight) else { return Ok(None) };
        let is_rejected = |end: FlightEnd| matches!(end, FlightEnd::Rejected(_));
        let rejected = flight.records.iter().filter(|record| is_rejected(record.end)).count();
        let (levels, part_length, parts) = time_line::time_line(&spans);
        Ok(Some(Self {
            length: spans.end - spans.begin,
            requests: flight.records.len() as u64,
            rejected: rejected as u64,
            first_rejection: first_rejection(&spans),
            part_length,
            parts,
            levels,
            usage: usage::usage(&spans),
            delays: delays::delays(&spans),
            agreement: decide_again(flight)?,
        }))
    }
}

fn first_rejection(spans: &Spans<'_>) -> Option<FirstRejection> {
    let rejections = spans.flight.records.iter().filter_map(|record| {
        let FlightEnd::Rejected(reason) = record.end else { return None };
        Some((record.at.saturating_add(record.waited), reason, record))
    });
    let (at, reason, record) = rejections.min_by_key(|(at, ..)| *at)?;
    let mut changes = spans.flight.header.changes.iter();
    let change = changes.rfind(|change| change.at <= at);
    Some(FirstRejection {
        after: at - spans.begin,
        flow: spans.flow_name(spans.flow_of(record)).to_owned(),
        level: spans.level_name(record.level).to_owned(),
        reason,
        change: change.map(|change| (change.at.saturating_sub(spans.begin), change.what.clone())),
    })
}
