//! Several instances share the seats of one service (FL): the product's own state machine with a simulated etcd, whose messages are delayed
//! and lost.
//!
//! | module | what it does |
//! |---|---|
//! | `cluster` | the servers, and what all of them do together |
//! | `exchange` | the members of the fleet, and their messages to etcd and back |
//! | `usage` | the seats that an instance uses over time |
//! | `report` | the figures |

mod cluster;
mod exchange;
mod report;
mod usage;

pub use report::{ApartReport, FleetReport, InstanceReport};

use evenkeel_engine::time::Nanos;

use crate::report::Report;
use crate::run::{Run, Scenario, simulate};
use crate::server_settings::ServerSettings;
use crate::workload::{Instances, Workload};
use cluster::Cluster;

/// Runs a workload on instances that share the seats, and on as many that have a fixed part each.
pub(crate) fn run(
    workload: &Workload,
    instances: &Instances,
    scenario: &Scenario,
    settings: &ServerSettings,
    seed: u64,
    progress: &mut dyn FnMut(Nanos),
) -> Run {
    let mut fleet = Cluster::fleet(instances, settings, &scenario.objects, seed);
    let (traffic, ended) = simulate(workload, scenario, seed, &mut fleet, progress);
    let mut report = Report::new(workload, &scenario.settings, seed, &fleet, &traffic, ended);
    let mut apart = Cluster::apart(instances, settings, &scenario.objects);
    let (beside, _) = simulate(workload, scenario, seed, &mut apart, &mut |_| {});
    report.fleet = Some(FleetReport::new(&fleet, &traffic, &apart, &beside));
    Run { report, levels: fleet.into_levels() }
}
