//! The report as JSON: its fields are a contract.

use std::collections::BTreeMap;

use evenkeel_replay::{Difference, Flow, FlowName, Notes, Placed, Replayed, Report};
use evenkeel_sim::report::LimitReport;
use evenkeel_sim::{Histogram, LevelRecord, REASONS};
use serde::Serialize;

use super::figures::{milliseconds, utilisation};
use super::incident::JsonIncident;

/// The fields, and what they mean. `flows[]` and `levels[]` have one entry for each flow and level.
pub(crate) const FIELDS: [(&str, &str); 26] = [
    ("lines", "lines or events that were read"),
    ("requests", "requests that were replayed"),
    ("damaged", "lines that could not be read"),
    ("damagedLines[]", "the first of them: `log`, `unit` (`line` or `event`), `number`, `reason`"),
    ("seconds", "how long the replay took in simulated time"),
    ("classification.compared", "requests whose classification by the server is known from the log or `--truth`"),
    ("classification.agree", "how many of them are classified in the same way"),
    (
        "classification.differ[]",
        "the first of the others: `id`, `user`, `verb`, `target`, `ours` and `theirs` (`schema`, `level`)",
    ),
    ("flows[].requests", "requests of the flow; flows that differ most come first"),
    ("flows[].recorded", "what the log has: `rejected`, and `wait` if it has waits"),
    ("flows[].before", "under `--against`; absent without it"),
    ("flows[].after", "under `--objects`"),
    (
        "flows[].after.schema, .level, .flow",
        "where the requests belong; without `flow`, all flows that have no row of their own",
    ),
    (
        "flows[].after.waited, .wait",
        "requests that waited; `p50`, `p99` and `max` of the wait of all that were not rejected on arrival",
    ),
    ("flows[].after.rejected", "rejected requests by reason"),
    ("flows[].after.seatSeconds", "seats times seconds"),
    (
        "levels[]",
        "`name`, and `before` and `after` with `nominal`, `seats` and `waiting` (`mean`, `max`), `utilisation`, `rejected`",
    ),
    (
        "limit.before, .after",
        "with `--concurrency auto`: the `limit` at the end, whether it `isKnown`, and its latest `changes` (`at` in seconds, `from`, `to`, `reason`)",
    ),
    ("notes", "assumptions and omissions, in numbers of requests"),
    (
        "incident",
        "of a dump only: `cause`, `seconds`, `requests`, `rejected`, `missed` (not recorded), `seats`, `isComplete`, `hidesUsers`",
    ),
    (
        "incident.firstRejection",
        "`after` (seconds), `flow`, `level`, `reason`, and `lastChange` before it (`after`, `what`); absent without rejections",
    ),
    (
        "incident.timeLine[]",
        "parts of the time: `after` (seconds), `arrived`, `rejected`, `longestWait` (milliseconds), `seats` by level (a mean), `mostSeats` (a flow)",
    ),
    (
        "incident.usage[]",
        "the flows that had seats for longest: `flow`, `level`, `requests`, `seatSeconds`, and `costs` by unit (`seconds`, `bytes`, `units`, `tokens`)",
    ),
    ("incident.delays[]", "the flows that waited for longest: `flow`, `level`, `waited` (seconds of all requests)"),
    (
        "incident.delays[].by[]",
        "who had the seats of the level meanwhile: `flow`, and its part of `waited` in `seconds`",
    ),
    (
        "incident.agreement",
        "of `requests`, how many start or are rejected at the `same` moment under the dump's objects; and how many others are `undecided`",
    ),
];

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct JsonReport {
    lines: u64,
    requests: u64,
    damaged: u64,
    damaged_lines: Vec<JsonDamaged>,
    seconds: f64,
    classification: JsonComparison,
    flows: Vec<JsonFlow>,
    levels: Vec<JsonLevel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<JsonLimit>,
    notes: JsonNotes,
    #[serde(skip_serializing_if = "Option::is_none")]
    incident: Option<JsonIncident>,
}

#[derive(Debug, Serialize)]
struct JsonLimit {
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<LimitReport>,
    after: LimitReport,
}

#[derive(Debug, Serialize)]
struct JsonDamaged {
    log: String,
    unit: &'static str,
    number: u64,
    reason: String,
}

#[derive(Debug, Serialize)]
struct JsonComparison {
    compared: u64,
    agree: u64,
    differ: Vec<JsonDifference>,
}

#[derive(Debug, Serialize)]
struct JsonDifference {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    user: String,
    verb: String,
    target: String,
    ours: JsonPlaced,
    theirs: JsonPlaced,
}

#[derive(Debug, Serialize)]
struct JsonPlaced {
    schema: String,
    level: String,
}

#[derive(Debug, Serialize)]
struct JsonFlow {
    requests: u64,
    recorded: JsonRecorded,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<JsonReplayed>,
    after: JsonReplayed,
}

#[derive(Debug, Serialize)]
struct JsonRecorded {
    rejected: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait: Option<JsonWait>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonReplayed {
    schema: String,
    level: String,
    /// Absent for a row that stands for many flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<String>,
    waited: u64,
    wait: JsonWait,
    rejected: BTreeMap<&'static str, u64>,
    seat_seconds: f64,
}

#[derive(Debug, Serialize)]
struct JsonWait {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct JsonLevel {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    before: Option<JsonOccupancy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<JsonOccupancy>,
}

#[derive(Debug, Serialize)]
struct JsonOccupancy {
    nominal: i64,
    seats: JsonMean,
    waiting: JsonMean,
    utilisation: f64,
    rejected: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Serialize)]
struct JsonMean {
    mean: f64,
    max: u64,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonNotes {
    logs: Vec<String>,
    without_users: bool,
    unauthenticated: u64,
    not_limited: u64,
    unfinished: u64,
    not_understood: u64,
    unplaced: u64,
    service_time_assumed_rejected: u64,
    service_time_assumed_untimed: u64,
    unknown_waits: u64,
    lists_of_unknown_size: u64,
    unknown_seats: u64,
    untold_headers: u64,
    untold_header_names: Vec<String>,
    untold_addresses: u64,
    untold_costs: u64,
    narrowed: u64,
    seatless: u64,
    late: u64,
}

// === impl JsonReport ===

impl JsonReport {
    pub(crate) fn new(report: &Report) -> Self {
        let damaged_lines = report.damaged.first().iter().map(|line| JsonDamaged {
            log: line.log.clone(),
            unit: line.unit,
            number: line.number,
            reason: line.reason.to_string(),
        });
        Self {
            lines: report.lines,
            requests: report.requests,
            damaged: report.damaged.count(),
            damaged_lines: damaged_lines.collect(),
            seconds: rounded(report.seconds()),
            classification: JsonComparison {
                compared: report.comparison.compared,
                agree: report.comparison.agree,
                differ: report.comparison.differ.iter().map(JsonDifference::new).collect(),
            },
            flows: report.flows.iter().map(JsonFlow::new).collect(),
            levels: levels(report),
            limit: limit(report),
            notes: JsonNotes::new(&report.notes),
            incident: None,
        }
    }

    /// The report about a dump.
    pub(super) fn with_incident(self, incident: JsonIncident) -> Self {
        Self { incident: Some(incident), ..self }
    }
}

// === impl JsonDifference ===

impl JsonDifference {
    fn new(difference: &Difference) -> Self {
        let placed =
            |placed: &Placed<'_>| JsonPlaced { schema: placed.schema.to_string(), level: placed.level.to_string() };
        let Difference { id, user, verb, target, ours, theirs, .. } = difference.clone();
        Self { id, user, verb, target, ours: placed(&ours), theirs: placed(&theirs) }
    }
}

// === impl JsonFlow ===

impl JsonFlow {
    fn new(flow: &Flow) -> Self {
        let mut sides: Vec<_> =
            flow.names.iter().zip(&flow.replayed).map(|(name, side)| JsonReplayed::new(name, side)).collect();
        let after = sides.pop().unwrap_or_else(|| unreachable!("there is at least one configuration"));
        let wait = (flow.recorded.wait.count() > 0).then(|| JsonWait::new(&flow.recorded.wait));
        let recorded = JsonRecorded { rejected: flow.recorded.rejected, wait };
        Self { requests: flow.requests, recorded, before: sides.pop(), after }
    }
}

// === impl JsonReplayed ===

impl JsonReplayed {
    fn new(name: &FlowName, side: &Replayed) -> Self {
        Self {
            schema: name.schema.to_string(),
            level: name.level.to_string(),
            flow: name.distinguisher.as_deref().map(str::to_owned),
            waited: side.waited,
            wait: JsonWait::new(&side.wait),
            rejected: reasons(&side.rejected),
            seat_seconds: rounded(side.seat_seconds()),
        }
    }
}

// === impl JsonWait ===

impl JsonWait {
    fn new(wait: &Histogram) -> Self {
        let [p50, p99] = [0.5, 0.99].map(|part| milliseconds(wait.percentile(part)));
        Self { p50, p99, max: milliseconds(wait.max()) }
    }
}

// === impl JsonOccupancy ===

impl JsonOccupancy {
    fn new(level: &LevelRecord) -> Self {
        let totals = level.totals();
        Self {
            nominal: level.limits().nominal,
            seats: JsonMean {
                mean: rounded(totals.seats_mean()),
                max: u64::try_from(totals.seats_max).unwrap_or_default(),
            },
            waiting: JsonMean { mean: rounded(totals.waiting_mean()), max: totals.waiting_max },
            utilisation: rounded(utilisation(level)),
            rejected: reasons(&totals.rejected),
        }
    }
}

// === impl JsonNotes ===

impl JsonNotes {
    fn new(notes: &Notes) -> Self {
        Self {
            logs: notes.formats.clone(),
            without_users: notes.without_users,
            unauthenticated: notes.unauthenticated,
            not_limited: notes.not_limited,
            unfinished: notes.unfinished,
            not_understood: notes.not_understood,
            unplaced: notes.unplaced,
            service_time_assumed_rejected: notes.rejected,
            service_time_assumed_untimed: notes.untimed,
            unknown_waits: notes.unknown_waits,
            lists_of_unknown_size: notes.lists,
            unknown_seats: notes.unknown_seats,
            untold_headers: notes.untold_headers,
            untold_header_names: notes.untold_header_names.iter().cloned().collect(),
            untold_addresses: notes.untold_addresses,
            untold_costs: notes.untold_costs,
            narrowed: notes.narrowed,
            seatless: notes.seatless,
            late: notes.late,
        }
    }
}

/// The limits that found themselves.
fn limit(report: &Report) -> Option<JsonLimit> {
    // The last configuration is the one after.
    let after = report.limit(report.sides() - 1)?;
    Some(JsonLimit { before: if report.sides() > 1 { report.limit(0) } else { None }, after })
}

/// The levels of all configurations, by name.
fn levels(report: &Report) -> Vec<JsonLevel> {
    let mut levels: BTreeMap<&str, [Option<JsonOccupancy>; 2]> = BTreeMap::new();
    for side in 0..report.sides() {
        // The last configuration is the one after.
        let place = side + 2 - report.sides();
        for level in report.levels(side) {
            levels.entry(level.name()).or_default()[place] = Some(JsonOccupancy::new(level));
        }
    }
    levels.into_iter().map(|(name, [before, after])| JsonLevel { name: name.to_owned(), before, after }).collect()
}

/// Numbers of rejected requests, without the reasons that there were not.
fn reasons(rejected: &[u64; REASONS.len()]) -> BTreeMap<&'static str, u64> {
    let named = REASONS.iter().map(|reason| reason.as_str()).zip(rejected.iter().copied());
    named.filter(|(_, count)| *count > 0).collect()
}

/// To three decimals.
fn rounded(figure: f64) -> f64 {
    (figure * 1e3).round() / 1e3
}
