//! `FleetState`: the state of an instance in its fleet, for views and for people (FL-14).

use std::fmt;
use std::time::Duration;

use evenkeel_fleet::{FleetStatus, Footing, MemberEvent};

/// How an instance stands in its fleet. [`FlowControl::fleet_state`](crate::FlowControl::fleet_state) gives it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FleetState {
    /// The name that the instances of the fleet share.
    pub service: String,
    /// The seats that this instance may use now.
    pub seats: u64,
    /// The seats that it uses, of all levels that have a limit.
    pub seats_in_use: u64,
    /// What its seats come from: a grant, its floor, or nothing.
    pub footing: Footing,
    /// The fleet, as of the last response of etcd.
    pub status: FleetStatus,
    /// How often another instance has written the ledger first.
    pub conflicts: u64,
    /// How many calls etcd has not answered in time.
    pub failed_calls: u64,
    /// How often this instance has registered.
    pub registrations: u64,
    /// The latest changes, with their reasons; the oldest first. At most 64.
    pub steps: Vec<FleetStep>,
}

/// Something that has happened to the instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FleetStep {
    /// Its number: each has one more than the one before.
    pub number: u64,
    /// How long ago it happened.
    pub ago: Duration,
    /// What happened. As a text, the step is a sentence.
    pub event: MemberEvent,
}

impl fmt::Display for FleetStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.event.fmt(f)
    }
}
