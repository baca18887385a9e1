//! `FleetMembership`: the member of a fleet that a flow control is.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use evenkeel_engine::auto_limit::{Concurrency, Learnt, LimitChange, LimitStatus};
use evenkeel_engine::fleet_division::InstanceLoad;
use evenkeel_fleet::{
    Allowance, CurrentUsage, Fleet, FleetConfig, FleetInstance, JoinError, LimitInput, LoadSource, MemberEvent,
    RateLoad, RateShares, boot_time,
};
use thiserror::Error;

use super::limit_history::LimitHistory;
use super::{FleetState, FleetStep};
use crate::control::flow_control::{FlowControl, FlowControlShared};
use crate::control::limit::LimitState;
use crate::control::trace;
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// How many of the latest steps are kept.
const STEPS_MAX: usize = 64;

/// Why a flow control cannot join a fleet.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum JoinFleetError {
    /// Levels could use more seats than there are.
    #[error(
        "a fleet needs levels that borrow at once and never use more seats than there are; use `preset: plain` without \
         `flowControl.borrowing: periodic`"
    )]
    Inexact,
    /// The flow control has joined a fleet already.
    #[error("this service belongs to a fleet already; a service belongs to one at most")]
    Joined,
    /// There is no tokio runtime.
    #[error("a fleet needs a tokio runtime; build the flow control inside of one")]
    NoRuntime,
    /// The name or etcd cannot be used.
    #[error(transparent)]
    Fleet(#[from] JoinError),
}

/// A flow control's place in its fleet.
#[derive(Debug)]
pub(crate) struct FleetMembership {
    service: String,
    /// The seats of the service by the settings.
    seats_set: u64,
    /// `None` when it has left.
    fleet: Mutex<Option<Fleet>>,
    status: tokio::sync::watch::Receiver<evenkeel_fleet::FleetStatus>,
    history: Arc<Mutex<History>>,
}

/// The latest events of the membership, and their counts.
#[derive(Debug, Default)]
struct History {
    conflicts: u64,
    failed_calls: u64,
    registrations: u64,
    steps: VecDeque<(u64, Instant, MemberEvent)>,
    next: u64,
    limit: LimitHistory,
}

/// A flow control as the fleet sees it.
struct Instance {
    flow: Weak<FlowControlShared>,
    history: Arc<Mutex<History>>,
}

// === impl FlowControl ===

impl FlowControl {
    /// Shares the seats of the service with other instances from now on: see
    /// [`FlowControlBuilder::fleet`](crate::FlowControlBuilder::fleet). Until the fleet has given it some it has none, so that requests wait;
    /// none at all after an error.
    pub fn join_fleet(&self, config: &FleetConfig) -> Result<(), JoinFleetError> {
        let shared = self.shared();
        if !shared.controlled().0.is_limit_exact() {
            return Err(JoinFleetError::Inexact);
        }
        if shared.fleet.get().is_some() {
            return Err(JoinFleetError::Joined);
        }
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(JoinFleetError::NoRuntime);
        }
        let history = Arc::new(Mutex::new(History::default()));
        let flow = Arc::downgrade(shared);
        let mut config = config.clone();
        match (config.settings.auto, shared.sum_up_for_fleet()) {
            (None, Some(found)) => config.settings = config.settings.auto(found),
            // The flow control has a number, and the fleet is to find another: it needs what happens here, too.
            (Some(found), None) => {
                self.set_concurrency(Concurrency::Auto(found.bounds()));
                shared.sum_up_for_fleet();
            }
            (Some(_), Some(_)) | (None, None) => {}
        }
        shared.upkeep().gate.limit(Weak::clone(&flow));
        let instance = Instance { flow, history: Arc::clone(&history) };
        // Nothing may start before the fleet has said so.
        shared.allow(Allowance::NONE);
        let fleet = Fleet::join(&config, Arc::new(instance))?;
        let status = fleet.subscribe();
        let (service, seats_set) = (config.service, config.settings.seats);
        let membership = FleetMembership { service, seats_set, fleet: Mutex::new(Some(fleet)), status, history };
        shared.fleet.set(membership).map_err(|_| JoinFleetError::Joined)
    }

    /// The state of this instance in its fleet; `None` if it has joined none.
    pub fn fleet_state(&self) -> Option<FleetState> {
        self.shared().fleet_state()
    }

    /// No new requests come any more: from now on, seats that the present ones do not need are for other instances (FL-11). Call
    /// [`leave_fleet`](Self::leave_fleet) when they have ended. Without a fleet nothing happens.
    pub fn drain_fleet(&self) {
        if let Some(membership) = self.shared().fleet.get()
            && let Some(fleet) = &*membership.fleet.lock().unwrap_or_else(PoisonError::into_inner)
        {
            fleet.give_back();
        }
    }

    /// Gives the seats back to the fleet as requests end, and leaves when none is in use and none waits (FL-11). Tells whether that has
    /// happened within the time; otherwise others have the seats when this instance has been silent for long enough.
    ///
    /// To be called when no requests come any more. Without a fleet nothing happens.
    pub async fn leave_fleet(&self, at_most: Duration) -> bool {
        let Some(membership) = self.shared().fleet.get() else { return true };
        let fleet = membership.fleet.lock().unwrap_or_else(PoisonError::into_inner).take();
        match fleet {
            Some(fleet) => fleet.leave(at_most).await,
            None => true,
        }
    }
}

// === impl FleetMembership ===

impl FleetMembership {
    /// The seats of the whole service: as the settings have them, until the ledger is known.
    pub(crate) fn service_seats(&self) -> i64 {
        let in_ledger = self.status.borrow().seats;
        i64::try_from(if in_ledger > 0 { in_ledger } else { self.seats_set }).unwrap_or(i64::MAX)
    }

    /// Notes an event that the member itself does not report.
    pub(crate) fn note(&self, event: MemberEvent) {
        lock(&self.history).note(event);
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// The state of this instance in its fleet, if it has joined one.
    pub(crate) fn fleet_state(&self) -> Option<FleetState> {
        let membership = self.fleet.get()?;
        let status = membership.status.borrow().clone();
        let history = lock(&membership.history);
        let steps = history.steps.iter().map(|(number, at, event)| FleetStep {
            number: *number,
            ago: at.elapsed(),
            event: *event,
        });
        Some(FleetState {
            service: membership.service.clone(),
            seats: status.allowance.seats(boot_time()),
            seats_in_use: self.limited_seats_in_use(),
            footing: status.allowance.footing(boot_time()),
            status,
            conflicts: history.conflicts,
            failed_calls: history.failed_calls,
            registrations: history.registrations,
            steps: steps.collect(),
        })
    }

    /// The limit that the fleet finds, as this instance knows it; nothing if the number of seats was set.
    pub(crate) fn limit_state_of_fleet(&self) -> Option<LimitState> {
        let membership = self.fleet.get()?;
        let (limit, seats) = {
            let status = membership.status.borrow();
            (status.limit?, u32::try_from(status.seats).unwrap_or(u32::MAX))
        };
        let found = limit.found;
        let elsewhere = || LimitStatus::found_elsewhere(found.limit(), seats, found.is_known);
        let found_by = found.by.filter(|_| limit.here.is_none()).map(|id| format!("{:016x}", id.0));
        let history = lock(&membership.history);
        Some(LimitState {
            bounds: found.bounds(),
            floor: limit.floor,
            found_by,
            is_held_down: limit.is_held_down,
            status: limit.here.unwrap_or_else(elsewhere),
            counts: history.limit.counts(),
            steps: history.limit.steps(boot_time()),
        })
    }

    /// What the fleet has learnt of the service.
    pub(crate) fn limit_learnt_by_fleet(&self) -> Option<Learnt> {
        self.fleet.get()?.status.borrow().limit?.found.as_learnt()
    }

    /// The seats in use, of all levels that have a limit.
    pub(crate) fn limited_seats_in_use(&self) -> u64 {
        let (_, snapshot) = self.controlled();
        let in_use = snapshot.levels.iter().map(|level| level.lock().limited_seats()).sum::<i64>();
        u64::try_from(in_use).unwrap_or(0)
    }
}

// === impl Instance ===

impl LoadSource for Instance {
    fn usage(&self) -> CurrentUsage {
        self.flow.upgrade().map(|flow| flow.fleet_usage()).unwrap_or_default()
    }

    fn load(&self, service_seats: u64) -> Arc<InstanceLoad> {
        self.flow.upgrade().map(|flow| flow.fleet_load(service_seats)).unwrap_or_default()
    }

    fn limit_input(&self) -> Option<LimitInput> {
        self.flow.upgrade()?.limit_input()
    }

    fn rates(&self) -> Vec<RateLoad> {
        self.flow.upgrade().map(|flow| flow.fleet_rates()).unwrap_or_default()
    }
}

impl FleetInstance for Instance {
    fn allow(&self, allowance: Allowance) {
        if let Some(flow) = self.flow.upgrade() {
            flow.allow(allowance);
        }
    }

    fn share_rates(&self, shares: &RateShares) {
        if let Some(flow) = self.flow.upgrade() {
            flow.share_rates(shares);
        }
    }

    fn tell(&self, event: MemberEvent) {
        lock(&self.history).note(event);
        trace::fleet(event);
    }

    fn tell_limit(&self, changes: &[LimitChange]) {
        lock(&self.history).limit.note(changes);
        if let Some(flow) = self.flow.upgrade() {
            trace::limit_changes(&flow.log, changes);
        }
    }
}

// === impl History ===

impl History {
    fn note(&mut self, event: MemberEvent) {
        match event {
            MemberEvent::Conflict => self.conflicts += 1,
            MemberEvent::CallFailed => self.failed_calls += 1,
            MemberEvent::Registered { .. } => self.registrations += 1,
            _ => {}
        }
        // Conflicts and failed calls change nothing, and there may be many.
        if matches!(event, MemberEvent::Conflict | MemberEvent::CallFailed) {
            return;
        }
        if self.steps.len() == STEPS_MAX {
            self.steps.pop_front();
        }
        self.steps.push_back((self.next, Instant::now(), event));
        self.next += 1;
    }
}

fn lock(history: &Mutex<History>) -> MutexGuard<'_, History> {
    history.lock().unwrap_or_else(PoisonError::into_inner)
}
