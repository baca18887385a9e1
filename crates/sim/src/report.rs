//! The figures of a run, in the form in which they are printed as JSON.

use std::collections::BTreeMap;

use evenkeel_engine::auto_limit::AutoLimit;
use evenkeel_engine::time::Nanos;
use serde::Serialize;

pub use crate::fleet::{ApartReport, FleetReport, InstanceReport};
use crate::level_record::LevelRecord;
use crate::series::REASONS;
use crate::server_settings::ServerSettings;
use crate::servers::Servers;
use crate::simulator::Simulator;
use crate::tally::Tally;
use crate::traffic::{Flow, Traffic};
use crate::workload::Workload;
use crate::{Histogram, Occupancy};

/// The figures of a run. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Report {
    /// The name of the workload.
    pub workload: String,
    /// The seed of the random numbers.
    pub seed: u64,
    /// The seats of the server, at the end.
    pub concurrency: i64,
    /// The limit that finds itself, if the server has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitReport>,
    /// How levels borrowed.
    pub borrowing: String,
    /// How many events were simulated.
    pub events: u64,
    /// How much time was simulated, the warm-up included.
    pub simulated_seconds: f64,
    /// Whether the simulation ended early, because it had too many events.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
    /// A row for each flow of the workload.
    pub flows: Vec<FlowReport>,
    /// All levels, by name.
    pub levels: Vec<LevelReport>,
    /// How evenly seats were divided among flows that wanted more.
    pub jain: JainReport,
    /// Several instances that shared the seats of the service, if the workload has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fleet: Option<FleetReport>,
}

/// A limit that found itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LimitReport {
    /// The limit that is believed to be right, at the end.
    pub limit: f64,
    /// Whether the search for it has ended.
    pub is_known: bool,
    /// The latest changes.
    pub changes: Vec<LimitChangeReport>,
}

/// A change of the limit, or a decision against one.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LimitChangeReport {
    /// When, in seconds from the start.
    pub at: f64,
    /// The limit before.
    pub from: u32,
    /// The limit after.
    pub to: u32,
    /// Why, in a sentence.
    pub reason: String,
}

/// Why a simulation did not come to the end of its workload: too many events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EndedEarly {
    /// How much time should have been simulated.
    pub of_seconds: f64,
    /// The row with the most requests.
    pub busiest_flow: String,
    /// Its requests.
    pub requests: u64,
}

/// A row: one flow, or several of a kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct FlowReport {
    /// The name of the row.
    pub name: String,
    /// How many flows it is.
    pub count: u32,
    /// Where its requests went.
    pub flow_schema: String,
    /// Where its requests went.
    pub priority_level: String,
    /// The outcomes of its requests.
    #[serde(flatten)]
    pub figures: Figures,
    /// The flow that fared worst, if there are several: the one with the highest 99th percentile of the total time, or if
    /// none of its requests completed, with the fewest completed requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstFlow>,
}

/// The outcomes of the requests of a flow.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Figures {
    /// Requests that arrived, each attempt counted.
    pub requests: u64,
    /// The requests among them that had been rejected before.
    pub retries: u64,
    /// Requests that the service has done.
    pub completed: u64,
    /// Rejected requests by reason.
    pub rejected: BTreeMap<&'static str, u64>,
    /// Requests that the service failed to do.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Requests that waited as long as they would.
    pub timed_out: u64,
    /// How long completed requests waited.
    pub wait: Percentiles,
    /// How long completed requests took, the wait included.
    pub total: Percentiles,
    /// The seat-seconds that they used.
    pub seat_seconds: f64,
    /// The cost of the requests, in the unit of their flow schema; absent if the workload does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// One of several flows of a kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct WorstFlow {
    /// The name of its user.
    pub user: String,
    /// The outcomes of its requests.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Percentiles {
    /// Half of all are at most this.
    pub p50: f64,
    /// 90 of 100.
    pub p90: f64,
    /// 99 of 100.
    pub p99: f64,
    /// 999 of 1,000.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// A level.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LevelReport {
    /// Its name.
    pub name: String,
    /// The seats that it has of its own, at the end.
    pub nominal: i64,
    /// The seats that nobody can borrow from it, at the end.
    pub floor: i64,
    /// The seats that it can have at most, at the end.
    pub max: i64,
    /// The seats in use.
    pub seats: MeanMax,
    /// The requests that waited.
    pub waiting: MeanMax,
    /// The seats in use on average, as a part of its own seats; absent if it has none.
    pub utilisation: Option<f64>,
    /// Rejected requests by reason.
    pub rejected: BTreeMap<&'static str, u64>,
}

/// The average and the most of something.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct MeanMax {
    /// The average over time.
    pub mean: f64,
    /// The most at any time.
    pub max: f64,
}

/// The Jain index of the seats that flows of a level got while their requests waited: 1 if all got the same. Absent if there
/// were never two such flows.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JainReport {
    /// Over all seconds in which a flow had requests waiting all the time. Of several levels, the least.
    pub overall: Option<f64>,
    /// The average of the indexes of each second and level.
    pub per_second_mean: Option<f64>,
    /// The least of them.
    pub per_second_min: Option<f64>,
}

// === impl Report ===

impl Report {
    pub(crate) fn new(
        workload: &Workload,
        settings: &ServerSettings,
        seed: u64,
        servers: &impl Servers,
        traffic: &Traffic<'_>,
        ended: Nanos,
    ) -> Self {
        let configuration = servers.all().first().map(Simulator::configuration);
        let limit = servers.all().first().and_then(Simulator::auto_limit);
        let rows = workload.flows.iter().enumerate().map(|(row, group)| {
            let flows = || traffic.flows().iter().filter(move |flow| flow.row == row);
            let mut all = Tally::default();
            flows().for_each(|flow| all.merge(flow.counted()));
            let class = flows().find_map(Flow::class);
            let schema = class.and_then(|class| configuration?.schemas().get(class.schema));
            let worst = flows().filter(|_| group.count > 1).max_by_key(|flow| badness(flow.counted()));
            FlowReport {
                name: group.name.clone(),
                count: group.count,
                flow_schema: schema.map_or_else(String::new, |schema| schema.name.to_string()),
                priority_level: schema.map_or_else(String::new, |schema| schema.level.name.to_string()),
                figures: Figures::new(&all),
                worst: worst.map(|flow| WorstFlow {
                    user: group.caller_of(flow.number).user.name.to_string(),
                    figures: Figures::new(flow.counted()),
                }),
            }
        });
        let rows: Vec<FlowReport> = rows.collect();
        let busiest = rows.iter().max_by_key(|row| row.figures.requests).filter(|_| ended < workload.span);
        let ended_early = busiest.map(|row| EndedEarly {
            of_seconds: rounded(seconds(workload.span.into())),
            busiest_flow: row.name.clone(),
            requests: row.figures.requests,
        });
        let mut levels: Vec<_> = servers.levels().iter().map(LevelReport::new).collect();
        levels.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            workload: workload.name.clone(),
            seed,
            concurrency: limit.map_or(settings.seats, |limit| limit.limit().into()),
            limit: limit.map(LimitReport::new),
            borrowing: settings.borrowing.name().to_owned(),
            events: servers.events(),
            simulated_seconds: rounded(seconds(ended.into())),
            ended_early,
            flows: rows,
            levels,
            jain: JainReport {
                overall: traffic.overall().map(rounded),
                per_second_mean: traffic.per_second.mean().map(rounded),
                per_second_min: traffic.per_second.min().map(rounded),
            },
            fleet: None,
        }
    }
}

/// The worst flow has the most of this. Of equal ones, the last.
fn badness(tally: &Tally) -> (bool, Nanos, std::cmp::Reverse<u64>) {
    (tally.completed == 0 && tally.requests > 0, tally.total.percentile(0.99), std::cmp::Reverse(tally.completed))
}

// === impl LimitReport ===

impl LimitReport {
    /// The report of a limit.
    pub fn new(limit: &AutoLimit) -> Self {
        let status = limit.status();
        let changes =
            limit.changes_since(0).filter(|(_, change)| !change.reason.is_routine() || change.from != change.to);
        let changes = changes.map(|(_, change)| LimitChangeReport {
            at: rounded(seconds(change.at.as_nanos().into())),
            from: change.from,
            to: change.to,
            reason: change.to_string(),
        });
        Self { limit: rounded(status.limit), is_known: status.is_known, changes: changes.collect() }
    }
}

// === impl Figures ===

impl Figures {
    /// The figures of a tally.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub fn new(tally: &Tally) -> Self {
        Self {
            requests: tally.requests,
            retries: tally.retries,
            completed: tally.completed,
            rejected: by_reason(&tally.rejected),
            failed: tally.failed,
            timed_out: tally.timed_out,
            wait: Percentiles::new(&tally.wait),
            total: Percentiles::new(&tally.total),
            seat_seconds: rounded(seconds(tally.seat_time)),
            cost: (tally.cost > 0).then_some(tally.cost as f64),
        }
    }

    /// All rejected requests, those that timed out not included.
    pub fn rejected_sum(&self) -> u64 {
        self.rejected.values().sum()
    }
}

/// The reasons that occurred.
fn by_reason(counts: &[u64; REASONS.len()]) -> BTreeMap<&'static str, u64> {
    let named = REASONS.iter().zip(counts).map(|(reason, count)| (reason.as_str(), *count));
    named.filter(|(_, count)| *count > 0).collect()
}

// === impl Percentiles ===

impl Percentiles {
    /// The percentiles of a histogram.
    pub fn new(histogram: &Histogram) -> Self {
        let part = |part| milliseconds(histogram.percentile(part));
        Self { p50: part(0.5), p90: part(0.9), p99: part(0.99), p999: part(0.999), max: milliseconds(histogram.max()) }
    }
}

// === impl LevelReport ===

impl LevelReport {
    /// The figures of a level.
    #[expect(clippy::cast_precision_loss, reason = "figures for people")]
    pub fn new(level: &LevelRecord) -> Self {
        let (limits, totals): (_, &Occupancy) = (level.limits(), level.totals());
        let mean = totals.seats_mean();
        Self {
            name: level.name().to_owned(),
            nominal: limits.nominal,
            floor: limits.min,
            max: limits.max,
            seats: MeanMax { mean: rounded(mean), max: totals.seats_max as f64 },
            waiting: MeanMax { mean: rounded(totals.waiting_mean()), max: totals.waiting_max as f64 },
            utilisation: (limits.nominal > 0).then(|| rounded(mean / limits.nominal as f64)),
            rejected: by_reason(&totals.rejected),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// To the thousandth.
pub(crate) fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

#[expect(clippy::cast_precision_loss, reason = "figures for people")]
fn seconds(nanos: i128) -> f64 {
    nanos as f64 / 1e9
}

fn milliseconds(span: Nanos) -> f64 {
    rounded(seconds(span.into()) * 1e3)
}
