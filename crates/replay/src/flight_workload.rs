//! A dump of a flight recorder as a workload: its requests at their times, for simulations (FR-3).

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel::events::CostKind;
use evenkeel::flight::{Flight, FlightEnd, FlightRequest};
use evenkeel_engine::time::{Nanos, SECOND};
use evenkeel_engine::{RequestInfo, User};
use evenkeel_sim::Caller;
use evenkeel_sim::workload::{Distribution, FlowGroup, RecordedRequest, Workload};

use crate::flight_notes::FlightNotes;

/// The requests of a row, as they were recorded.
#[derive(Debug, Default)]
struct Row {
    requests: Vec<RowRequest>,
    patience: Nanos,
}

/// A request of a row. The service time of one that did not finish is not known, nor is its cost.
#[derive(Debug, Clone, Copy)]
struct RowRequest {
    at: Nanos,
    service: Option<Nanos>,
    cost: Option<i64>,
}

/// The sum and number of service times that are known.
#[derive(Debug, Clone, Copy, Default)]
struct Mean {
    sum: i128,
    count: i128,
}

/// The requests of a dump as a workload: a row for each user, verb and path that the dump tells apart, and each number of seats.
///
/// Requests arrive when they did, and the service works on them for as long as it did. A request that was rejected or had not ended has
/// the mean of the others of its row, or of all. Costs are those that were recorded, in the units that counted then.
pub fn workload_of(name: &str, flight: &Flight) -> Workload {
    let notes = FlightNotes::new(flight);
    let arrived = |number: usize| notes.arrived(number);
    let begin = (0..flight.records.len()).map(arrived).min().unwrap_or(0);
    let mut rows: BTreeMap<(u32, u32), Row> = BTreeMap::new();
    let mut of_all = Mean::default();
    for (number, record) in flight.records.iter().enumerate() {
        let row = rows.entry((record.request, record.work.max_seats())).or_default();
        let service = match record.end {
            FlightEnd::Finished { ran } => Some(ran),
            FlightEnd::Open { .. } | FlightEnd::Rejected(_) => None,
        };
        if let Some(service) = service {
            of_all.add(service);
        }
        let at = arrived(number);
        // Where time is the unit, the service time says it.
        let cost = notes.cost(number).filter(|(_, unit)| *unit != CostKind::Seconds).map(|(cost, _)| rounded(cost));
        row.requests.push(RowRequest { at: at - begin, service, cost });
        row.patience = row.patience.max(record.wait_limit.saturating_add(record.at - at));
    }
    let last = (0..flight.records.len()).map(arrived).max().map_or(0, |last| last - begin);
    // The last request has to arrive before the end.
    let span = (last / SECOND + 1).saturating_mul(SECOND);
    let flows = rows.into_iter().filter_map(|((request, seats), row)| {
        let request = flight.header.requests.get(request as usize)?;
        Some(row.into_group(request, seats, of_all))
    });
    Workload::recorded(name, span, flows.collect())
}

// === impl Row ===

impl Row {
    fn into_group(mut self, request: &FlightRequest, seats: u32, of_all: Mean) -> FlowGroup {
        // Requests that waited for a rate have their records where they came to their level.
        self.requests.sort_by_key(|request| request.at);
        let mean_of = |each: fn(&RowRequest) -> Option<i64>| {
            let mut mean = Mean::default();
            self.requests.iter().filter_map(each).for_each(|value| mean.add(value));
            mean.value()
        };
        let unknown = mean_of(|request| request.service).or(of_all.value()).unwrap_or(0);
        let mean_cost = mean_of(|request| request.cost);
        let requests: Arc<[RecordedRequest]> = self
            .requests
            .into_iter()
            .map(|RowRequest { at, service, cost }| {
                let cost = cost.or(mean_cost).unwrap_or(0);
                RecordedRequest { at, service: service.unwrap_or(unknown), cost }
            })
            .collect();
        let mut group = FlowGroup::recorded(row_name(request, seats), caller_of(request), seats, requests);
        group.patience = Some(self.patience);
        group.cost = mean_cost.map(Distribution::Fixed);
        group
    }
}

// === impl Mean ===

impl Mean {
    fn add(&mut self, value: Nanos) {
        self.sum += i128::from(value);
        self.count += 1;
    }

    fn value(self) -> Option<Nanos> {
        self.sum.checked_div(self.count).and_then(|mean| Nanos::try_from(mean).ok())
    }
}

#[expect(clippy::cast_possible_truncation, reason = "such a cast stays within bounds")]
fn rounded(cost: f64) -> i64 {
    cost.round() as i64
}

fn row_name(request: &FlightRequest, seats: u32) -> String {
    let FlightRequest { user, verb, path, .. } = request;
    let asked = format!("{user} {verb} {path}");
    let asked = if asked.trim().is_empty() { "unknown" } else { asked.trim() };
    if seats == 1 { asked.to_owned() } else { format!("{asked} ({seats} seats)") }
}

fn caller_of(request: &FlightRequest) -> Caller {
    let user = User::new(&*request.user, request.groups.iter().map(String::as_str));
    let mut info = RequestInfo::for_path(request.verb.clone(), request.path.clone());
    if let Some([api_group, resource, subresource, namespace, name]) = request.resource.clone() {
        info.is_resource_request = true;
        (info.api_group, info.resource, info.subresource) = (api_group.into(), resource.into(), subresource.into());
        (info.namespace, info.name) = (namespace.into(), name.into());
    }
    Caller { user, request: info, query: Box::default() }
}
