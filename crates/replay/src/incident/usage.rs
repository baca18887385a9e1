//! Who used what: the seats that flows had and for how long, and what their requests cost.

use std::collections::HashMap;

use evenkeel::events::CostKind;
use evenkeel::flight::FlightFact;
use evenkeel_engine::time::SECOND;

use super::Usage;
use super::spans::Spans;

/// How many flows are told.
const TOLD_MAX: usize = 10;

/// What a flow used in a level.
#[derive(Debug, Clone, Copy, Default)]
struct Used {
    requests: u64,
    /// In seats times nanoseconds.
    seat_time: i128,
    /// In thousandths of each unit.
    costs: [u128; KINDS.len()],
}

const KINDS: [CostKind; 4] = [CostKind::Seconds, CostKind::Bytes, CostKind::Units, CostKind::Tokens];

/// The flows that had seats for longest.
pub(super) fn usage(spans: &Spans<'_>) -> Vec<Usage> {
    let mut used: HashMap<(u16, usize), Used> = HashMap::new();
    for record in &spans.flight.records {
        let of_flow = used.entry((record.level, spans.flow_of(record))).or_default();
        of_flow.requests += 1;
        if let Some(running) = spans.running(record) {
            of_flow.seat_time += i128::from(running.length()) * i128::from(record.work.max_seats());
        }
    }
    for note in &spans.flight.notes {
        let FlightFact::Cost { thousandths, unit } = note.fact else { continue };
        let Some(record) = spans.flight.records.get(note.record as usize) else { continue };
        let of_flow = used.entry((record.level, spans.flow_of(record))).or_default();
        if let Some(place) = KINDS.iter().position(|kind| *kind == unit) {
            of_flow.costs[place] += u128::from(thousandths);
        }
    }
    let mut all: Vec<_> = used.into_iter().filter(|(_, used)| used.seat_time > 0 || used.costs != [0; 4]).collect();
    all.sort_by_key(|(flow, used)| (std::cmp::Reverse((used.seat_time, used.costs)), *flow));
    all.truncate(TOLD_MAX);
    let told = all.into_iter().map(|((level, flow), used)| {
        let costs = KINDS.into_iter().zip(used.costs).filter(|(_, cost)| *cost > 0);
        #[expect(clippy::cast_precision_loss, reason = "numbers for people")]
        Usage {
            flow: spans.flow_name(flow).to_owned(),
            level: spans.level_name(level).to_owned(),
            requests: used.requests,
            seat_seconds: used.seat_time as f64 / SECOND as f64,
            costs: costs.map(|(kind, cost)| (kind, cost as f64 / 1000.0)).collect(),
        }
    });
    told.collect()
}
