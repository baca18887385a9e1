//! Whether requests are within the rates of their flows, once more.
//!
//! A rate does not depend on what happens in levels, so all of them are decided about before: by what was asked of each rate when, and by what
//! requests gave back or had cost in the end.

use std::collections::HashMap;

use evenkeel::flight::{Flight, FlightEnd, FlightRate, FlightRecord, RateOutcome};
use evenkeel_api::annotations::{Excess, RateUnit};
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::rate::SharedStamps;
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Configuration, FlowRate};

use crate::flight_notes::FlightNotes;

/// What happened to a rate, in the order in which it counts at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happened {
    /// A request took too little, or too much if the number is below zero.
    Corrected(i64),
    Asked,
    /// A request that had asked at that moment gave back what it took.
    GivenBack(i64),
}

/// What a rate says when it is asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RateAgain {
    Same,
    Different,
    /// The flow schema has no rate.
    NoRate,
}

/// How many flows of a schema are remembered that are not at rest, as in the library.
const FLOWS_MAX: usize = 1 << 20;

/// For each request that has asked for a rate, what the rate says when it is asked again.
pub(super) fn decide(
    flight: &Flight,
    notes: &FlightNotes<'_>,
    configuration: &Configuration,
) -> HashMap<usize, RateAgain> {
    let mut schemas: HashMap<&str, Option<(FlowRate, SharedStamps)>> = HashMap::new();
    let mut happened = Vec::new();
    for (number, record) in flight.records.iter().enumerate() {
        let Some(rate) = notes.rate(number) else { continue };
        let schema = schema_of(flight, record);
        let kept = schemas.entry(schema).or_insert_with(|| {
            let found = configuration.schemas().iter().find(|one| *one.name == *schema)?;
            Some((found.terms.as_deref()?.rate?, SharedStamps::new(FLOWS_MAX)))
        });
        happened.push((rate.at, Happened::Asked, number));
        if let Some((flow_rate, _)) = kept
            && let Some((at, more)) = correction(flow_rate, record, rate, notes.cost(number).map(|(cost, _)| cost))
        {
            let what = if at > rate.at { Happened::Corrected(more) } else { Happened::GivenBack(more) };
            happened.push((at, what, number));
        }
    }
    happened.sort_unstable();
    let mut said = HashMap::new();
    for (at, what, number) in happened {
        let (Some(record), Some(rate)) = (flight.records.get(number), notes.rate(number)) else { continue };
        let kept = schemas.get_mut(schema_of(flight, record)).and_then(Option::as_mut);
        let Some((flow_rate, stamps)) = kept else {
            said.insert(number, RateAgain::NoRate);
            continue;
        };
        match what {
            Happened::Corrected(more) | Happened::GivenBack(more) => {
                stamps.correct(&flow_rate.limit, rate.flow, more, Instant::from_nanos(at));
            }
            Happened::Asked => {
                let is_same = asks(flow_rate, stamps, record, rate);
                said.insert(number, if is_same { RateAgain::Same } else { RateAgain::Different });
            }
        }
    }
    said
}

/// A request asks: whether it hears what it heard.
fn asks(flow_rate: &FlowRate, stamps: &mut SharedStamps, record: &FlightRecord, rate: FlightRate) -> bool {
    let is_over_rate = record.end == FlightEnd::Rejected(Rejection::RateLimit);
    let waits_from = if is_over_rate { rate.at } else { record.at };
    let latest =
        if flow_rate.rate.excess == Excess::Reject { rate.at } else { waits_from.saturating_add(record.wait_limit) };
    let (now, latest) = (Instant::from_nanos(rate.at), Instant::from_nanos(latest));
    let Ok(passage) = stamps.take(&flow_rate.limit, rate.flow, rate.amount, now, latest) else { return is_over_rate };
    let is_at_once = passage.at <= now;
    !is_over_rate
        && match rate.outcome {
            RateOutcome::AtOnce => is_at_once,
            // Its timer may have been late, but not early.
            RateOutcome::Waited => !is_at_once && passage.at.as_nanos() <= record.at,
            RateOutcome::Left => !is_at_once,
        }
}

/// When and by how much a rate was corrected that a request had taken, if that was so (RL-3).
fn correction(
    flow_rate: &FlowRate,
    record: &FlightRecord,
    rate: FlightRate,
    cost: Option<f64>,
) -> Option<(Nanos, i64)> {
    let counts_cost = flow_rate.rate.unit != RateUnit::Requests;
    let taken = i64::try_from(rate.amount).unwrap_or(i64::MAX);
    let end = record.at.saturating_add(record.waited);
    match record.end {
        FlightEnd::Rejected(Rejection::RateLimit) | FlightEnd::Open { .. } => None,
        FlightEnd::Rejected(reason) => {
            // Whoever got nowhere gives back everything. Who was in a queue gives back what depends on costs.
            let is_refused = record.waited == 0
                && matches!(reason, Rejection::QueueFull | Rejection::ConcurrencyLimit | Rejection::TooManyLongRunning);
            let gives_back = is_refused || rate.outcome == RateOutcome::Left || counts_cost;
            gives_back.then_some((end, -taken))
        }
        FlightEnd::Finished { ran } => {
            #[expect(clippy::cast_possible_truncation, reason = "such a cast stays within bounds")]
            let cost = cost.filter(|_| counts_cost)?.round() as i64;
            Some((end.saturating_add(ran), cost.saturating_sub(taken)))
        }
    }
}

fn schema_of<'a>(flight: &'a Flight, record: &FlightRecord) -> &'a str {
    flight.header.requests.get(record.request as usize).map_or("", |request| &*request.flow_schema)
}
