//! Runs a workload against a configuration.

use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::{Nanos, SECOND};

use crate::fleet;
use crate::level_record::LevelRecord;
use crate::report::Report;
use crate::server_settings::ServerSettings;
use crate::servers::Servers;
use crate::simulator::Simulator;
use crate::traffic::{Token, Traffic};
use crate::workload::{Change, Workload};

/// A server and its configuration, for a run.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// The server. Its service and object counts are those of the workload.
    pub settings: ServerSettings,
    /// The objects that it starts with.
    pub objects: Objects,
    /// For each event of the workload that applies a file, in order: the objects of that file.
    pub applied: Vec<Objects>,
}

/// The result of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Run {
    /// The figures.
    pub report: Report,
    /// The levels, with what they did over time.
    pub levels: Vec<LevelRecord>,
}

/// About this many buckets are in a time series of a run.
const BUCKETS: Nanos = 300;

/// Runs a workload. `progress` is told the simulated time once for each second of it.
///
/// The seats of [instances](Workload::instances) are those of [`ServerSettings::seats`]. They need a division that is exact and borrowing
/// at once, as `plain` has them: otherwise levels may use a little more than there is.
pub fn run(workload: &Workload, scenario: &Scenario, seed: u64, progress: &mut dyn FnMut(Nanos)) -> Run {
    let mut settings = scenario.settings.clone();
    settings.service = workload.service;
    settings.bucket_width = (workload.span + BUCKETS - 1) / BUCKETS;
    for (resource, count, bytes) in &workload.objects {
        settings.objects.set(resource, *count, *bytes);
    }
    if let Some(instances) = &workload.instances {
        return fleet::run(workload, instances, scenario, &settings, seed, progress);
    }
    let mut simulator = Simulator::new(settings, scenario.objects.clone());
    let (traffic, ended) = simulate(workload, scenario, seed, &mut simulator, progress);
    let report = Report::new(workload, &scenario.settings, seed, &simulator, &traffic, ended);
    Run { report, levels: simulator.into_levels() }
}

/// Lets the clients of a workload send their requests. Returns what became of them, and when it ended.
pub(crate) fn simulate<'a>(
    workload: &'a Workload,
    scenario: &Scenario,
    seed: u64,
    servers: &mut impl Servers,
    progress: &mut dyn FnMut(Nanos),
) -> (Traffic<'a>, Nanos) {
    let mut traffic = Traffic::new(workload, seed, servers.all().len());
    let mut events = workload.events.iter().peekable();
    let mut applied = scenario.applied.iter();
    let mut warmup = (workload.warmup > 0).then_some(workload.warmup);
    let mut second = SECOND.min(workload.span);
    let mut ended = workload.span;
    loop {
        if servers.events() >= workload.simulated_events_max {
            ended = servers.all().iter().map(Simulator::now).max().unwrap_or(0);
            break;
        }
        let arrival = traffic.next_arrival().unwrap_or(Nanos::MAX);
        let event = events.peek().map_or(Nanos::MAX, |event| event.at);
        let mark = second.min(warmup.unwrap_or(Nanos::MAX)).min(event);
        // Timers may cause arrivals that are earlier than the next one known now.
        if servers.step(arrival.min(mark), &mut traffic) {
            continue;
        }
        if arrival < mark {
            if let Some(server) = traffic.arrive(servers.all_mut()) {
                servers.changed(server);
            }
            continue;
        }
        servers.all_mut().iter_mut().for_each(|server| server.run_until(mark, &mut traffic));
        if warmup == Some(mark) {
            servers.reset_counts(mark);
            traffic.reset_counts(mark);
            warmup = None;
        }
        if let Some(event) = events.next_if(|event| event.at == mark) {
            let objects = if let Change::Apply(_) = event.change { applied.next() } else { None };
            for index in 0..servers.all().len() {
                change(&mut servers.all_mut()[index], mark, &event.change, objects, &mut traffic);
                servers.changed(index);
            }
            servers.reconfigured();
        }
        if second == mark {
            if mark >= workload.span {
                break;
            }
            traffic.end_second(mark);
            progress(mark);
            second = (second + SECOND).min(workload.span);
        }
    }
    traffic.close(ended);
    servers.close_records(ended);
    (traffic, ended)
}

/// What an event does to a server.
fn change(
    simulator: &mut Simulator<Token>,
    at: Nanos,
    change: &Change,
    objects: Option<&Objects>,
    traffic: &mut Traffic<'_>,
) {
    match change {
        Change::Apply(_) => {
            if let Some(objects) = objects {
                simulator.apply(at, objects.clone(), traffic);
            }
        }
        Change::Slots(slots) => simulator.set_slots(at, *slots, traffic),
        Change::Failing(is_failing) => simulator.set_failing(at, *is_failing, traffic),
        Change::Concurrency(seats) => simulator.set_seats(at, i64::from(*seats), traffic),
    }
}
