//! An instance of a fleet, in a frame.

use evenkeel::fleet::{FleetState, FleetStep};
use serde::{Deserialize, Serialize};

use super::is_default;

/// The state of a server in the fleet with which it shares the seats of its service (FL-14).
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Fleet {
    /// The name that the instances share.
    pub service: String,
    /// The seats that this instance may use now.
    pub seats: u64,
    /// The seats that it uses, of all levels that have a limit.
    pub in_use: u64,
    /// The seats that it keeps when it is cut off from etcd.
    pub floor: u64,
    /// What its seats come from: `grant`, `floor` or `nothing`.
    pub footing: String,
    /// The seats of the service, all instances together.
    pub total: u64,
    /// The seats that are granted or still held, all instances together.
    pub held: u64,
    /// The instances in the ledger.
    pub instances: usize,
    /// The revision of the ledger in etcd.
    pub revision: u64,
    /// How often another instance wrote the ledger first.
    #[serde(skip_serializing_if = "is_default")]
    pub conflicts: u64,
    /// The calls that etcd did not answer in time.
    #[serde(skip_serializing_if = "is_default")]
    pub failed_calls: u64,
    /// The latest changes, the oldest first.
    #[serde(skip_serializing_if = "is_default")]
    pub steps: Vec<FleetChange>,
}

/// Something that has happened to the instance.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct FleetChange {
    /// The number of the change: each has one more than the one before.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// What happened, in one sentence without a full stop.
    pub text: String,
}

// === impl Fleet ===

impl Fleet {
    /// The state of an instance at a time, in milliseconds since 1970, with so many of the latest changes.
    pub fn new(state: &FleetState, time_ms: u64, steps_max: usize) -> Self {
        let change = |step: &FleetStep| FleetChange {
            number: step.number,
            time_ms: time_ms.saturating_sub(u64::try_from(step.ago.as_millis()).unwrap_or(u64::MAX)),
            text: step.to_string(),
        };
        let skipped = state.steps.len().saturating_sub(steps_max);
        Self {
            service: state.service.clone(),
            seats: state.seats,
            in_use: state.seats_in_use,
            floor: state.status.allowance.floor,
            footing: state.footing.as_str().to_owned(),
            total: state.status.seats,
            held: state.status.seats_held,
            instances: state.status.instances,
            revision: state.status.ledger_revision,
            conflicts: state.conflicts,
            failed_calls: state.failed_calls,
            steps: state.steps.iter().skip(skipped).map(change).collect(),
        }
    }

    /// The state in one phrase.
    pub fn phrase(&self) -> String {
        let Self { service, seats, total, instances, footing, .. } = self;
        match footing.as_str() {
            "grant" => format!("fleet {service}: {seats} of {total} seats, {instances} instances"),
            "floor" => format!("fleet {service}: cut off from etcd, {seats} of {total} seats are its floor"),
            _ => format!("fleet {service}: no seats, etcd does not answer"),
        }
    }
}
