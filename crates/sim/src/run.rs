//! Runs a workload against a configuration.

use evenkeel_engine::controller::Objects;
use evenkeel_engine::time::{Nanos, SECOND};

use crate::level_record::LevelRecord;
use crate::report::Report;
use crate::server_settings::ServerSettings;
use crate::simulator::Simulator;
use crate::traffic::Traffic;
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

/// What came of a run.
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
pub fn run(workload: &Workload, scenario: &Scenario, seed: u64, progress: &mut dyn FnMut(Nanos)) -> Run {
    let mut settings = scenario.settings.clone();
    settings.service = workload.service;
    settings.bucket_width = (workload.span + BUCKETS - 1) / BUCKETS;
    for (resource, count, bytes) in &workload.objects {
        settings.objects.set(resource, *count, *bytes);
    }
    let mut simulator = Simulator::new(settings, scenario.objects.clone());
    let mut traffic = Traffic::new(workload, seed);
    let mut events = workload.events.iter().peekable();
    let mut applied = scenario.applied.iter();
    let mut warmup = (workload.warmup > 0).then_some(workload.warmup);
    let mut second = SECOND.min(workload.span);
    let mut ended = workload.span;
    loop {
        if simulator.events() >= workload.simulated_events_max {
            ended = simulator.now();
            break;
        }
        let arrival = traffic.next_arrival().unwrap_or(Nanos::MAX);
        let event = events.peek().map_or(Nanos::MAX, |event| event.at);
        let mark = second.min(warmup.unwrap_or(Nanos::MAX)).min(event);
        // Timers may cause arrivals that are earlier than the next one known now.
        if simulator.step(arrival.min(mark), &mut traffic) {
            continue;
        }
        if arrival < mark {
            traffic.arrive(&mut simulator);
            continue;
        }
        simulator.run_until(mark, &mut traffic);
        if warmup == Some(mark) {
            simulator.reset_counts();
            traffic.reset_counts(mark);
            warmup = None;
        }
        if let Some(event) = events.next_if(|event| event.at == mark) {
            match &event.change {
                Change::Apply(_) => {
                    if let Some(objects) = applied.next() {
                        simulator.apply(mark, objects.clone(), &mut traffic);
                    }
                }
                Change::Slots(slots) => simulator.set_slots(mark, *slots, &mut traffic),
                Change::Failing(is_failing) => simulator.set_failing(mark, *is_failing, &mut traffic),
                Change::Concurrency(seats) => simulator.set_seats(mark, i64::from(*seats), &mut traffic),
            }
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
    simulator.close_records();
    let report = Report::new(workload, &scenario.settings, seed, &simulator, &traffic, ended);
    Run { report, levels: simulator.into_levels() }
}
