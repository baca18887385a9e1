//! Events for `tracing`. Without the feature there are none.
//!
//! Events about requests that wait or are rejected have the keys of the access log of Kubernetes (HF-17):
//! `apf_pl`, `apf_fs`, `apf_iseats`, `apf_fseats` and `apf_additionalLatency`. There are no events for
//! requests that run, so `apf_execution_time` and `apf_init_latency` are absent: metrics have them.
//!
//! Events about single requests have the level `debug`: under load there are too many of them.

use std::fmt;
use std::sync::Arc;
#[cfg(feature = "tracing")]
use std::time::Duration;

use evenkeel_api::Kind;
use evenkeel_api::annotations::NotUnderstood;
use evenkeel_engine::auto_limit::LimitChange;
#[cfg(feature = "tracing")]
use evenkeel_engine::controller::ControlledLevel;
use evenkeel_engine::controller::{Dangling, TooFewSeats, Unusable};
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::{Schema, WorkEstimate};

use crate::control::seat_division::SeatController;

/// The choices of what a flow control logs.
#[derive(Debug, Clone)]
pub(crate) struct LogChoice {
    /// The name of its service, if it has one.
    pub(crate) service: Option<Arc<str>>,
    /// Whether it warns of objects that cannot be used.
    pub(crate) warns_of_objects: bool,
}

/// How the seats were divided, for events that are sent when no lock is held: a subscriber may call the flow control.
#[derive(Debug)]
pub(crate) struct Division {
    #[cfg(feature = "tracing")]
    fair_fraction: f64,
    #[cfg(feature = "tracing")]
    levels: Vec<LevelSeats>,
}

/// The seats of one level.
#[cfg(feature = "tracing")]
#[derive(Debug)]
struct LevelSeats {
    name: String,
    current_limit: i64,
    target: f64,
    smoothed_demand: f64,
}

/// A name as the access log has it: 64 bytes of it (HF-17).
#[cfg(feature = "tracing")]
fn short(name: &str) -> &str {
    name.get(..64).unwrap_or(name)
}

#[cfg(feature = "tracing")]
fn latency(work: WorkEstimate) -> Duration {
    Duration::from_nanos(u64::try_from(work.additional_latency).unwrap_or(0))
}

/// A request has to wait.
#[inline]
pub(crate) fn queued(schema: &Schema, work: WorkEstimate) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        apf_pl = short(&schema.level.name),
        apf_fs = short(&schema.name),
        apf_iseats = work.initial_seats,
        apf_fseats = work.final_seats,
        apf_additionalLatency = ?latency(work),
        "request queued"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, work);
}

/// A request is rejected on arrival.
#[inline]
pub(crate) fn rejected(schema: &Schema, work: WorkEstimate, reason: Rejection) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        apf_pl = short(&schema.level.name),
        apf_fs = short(&schema.name),
        apf_iseats = work.initial_seats,
        apf_fseats = work.final_seats,
        apf_additionalLatency = ?latency(work),
        reason = reason.as_str(),
        "request rejected"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, work, reason);
}

/// A waiting request has been cancelled, or has waited as long as it may.
#[inline]
pub(crate) fn gave_up(schema: &Schema, reason: Rejection) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        apf_pl = short(&schema.level.name),
        apf_fs = short(&schema.name),
        reason = reason.as_str(),
        "request left its queue without running"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, reason);
}

/// Flow schemas refer to levels that do not exist.
pub(crate) fn dangling(schemas: &[Dangling]) {
    for Dangling { schema, level, .. } in schemas {
        #[cfg(feature = "tracing")]
        tracing::warn!(
            flow_schema = %schema,
            priority_level = %level,
            "flow schema ignored: its priority level does not exist or cannot be used"
        );
        #[cfg(not(feature = "tracing"))]
        let _ = (schema, level);
    }
}

/// Levels cannot be used.
pub(crate) fn unusable(levels: &[(String, Unusable)]) {
    for (name, reason) in levels {
        #[cfg(feature = "tracing")]
        tracing::warn!(priority_level = %name, %reason, "priority level ignored: it cannot be used");
        #[cfg(not(feature = "tracing"))]
        let _ = (name, reason);
    }
}

/// Objects have annotations that are not understood (BM-2).
pub(crate) fn not_understood(annotations: &[(Kind, String, NotUnderstood)]) {
    for (kind, name, problem) in annotations {
        #[cfg(feature = "tracing")]
        tracing::warn!(%kind, %name, "{problem}");
        #[cfg(not(feature = "tracing"))]
        let _ = (kind, name, problem);
    }
}

/// The server has no seats.
pub(crate) fn no_seats() {
    #[cfg(feature = "tracing")]
    tracing::warn!("the server has no seats, so hardly any request runs: set `server_concurrency` to at least 1");
}

/// An event of this instance of a fleet (FL-14).
#[cfg(feature = "fleet")]
pub(crate) fn fleet(event: evenkeel_fleet::MemberEvent) {
    #[cfg(feature = "tracing")]
    use evenkeel_fleet::MemberEvent;
    #[cfg(feature = "tracing")]
    match event {
        MemberEvent::Registered { .. }
        | MemberEvent::Joined { .. }
        | MemberEvent::Left { .. }
        | MemberEvent::SettingsChanged { .. } => tracing::info!("{event}"),
        MemberEvent::RegistrationLost | MemberEvent::Reclaimed { .. } => tracing::warn!("{event}"),
        // Seats follow the demand many times a minute.
        _ => tracing::debug!("{event}"),
    }
    #[cfg(not(feature = "tracing"))]
    let _ = event;
}

/// An instance of a fleet is cut off from etcd, or is so no longer.
#[cfg(feature = "fleet")]
pub(crate) fn fleet_footing(footing: evenkeel_fleet::Footing, seats: u32) {
    #[cfg(feature = "tracing")]
    match footing {
        evenkeel_fleet::Footing::Grant => tracing::info!(seats, "the fleet has renewed the grant of this instance"),
        evenkeel_fleet::Footing::Floor => {
            tracing::warn!(
                seats,
                "etcd has not confirmed the grant of this instance in time: only its floor may be used"
            );
        }
        _ => tracing::error!("etcd has not answered for too long: no request starts until it does"),
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (footing, seats);
}

/// The limit that finds itself has changed, or has decided not to (AL-7).
pub(crate) fn limit_changes(log: &LogChoice, changes: &[LimitChange]) {
    for change in changes {
        #[cfg(feature = "tracing")]
        if change.reason.is_routine() && change.from == change.to {
            tracing::debug!(service = log.service.as_deref(), from = change.from, to = change.to, "limit: {change}");
        } else {
            tracing::info!(service = log.service.as_deref(), from = change.from, to = change.to, "limit: {change}");
        }
        #[cfg(not(feature = "tracing"))]
        let _ = (log, change);
    }
}

/// A part of the flows is decided about by another configuration from now on.
pub(crate) fn canary_begins(log: &LogChoice, percent: u8, seats: i64) {
    #[cfg(feature = "tracing")]
    tracing::info!(service = log.service.as_deref(), percent, seats, "the canary has a part of the flows");
    #[cfg(not(feature = "tracing"))]
    let _ = (log, percent, seats);
}

/// A canary was worse than its bounds.
pub(crate) fn canary_returns(log: &LogChoice, reason: &dyn fmt::Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        service = log.service.as_deref(),
        "the canary has returned, and all flows are where they were before: {reason}"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (log, reason);
}

/// A listener has panicked.
pub(crate) fn listener_panicked() {
    #[cfg(feature = "tracing")]
    tracing::error!("a listener of events panicked; it gets no further events");
}

/// Warns that there are fewer seats than levels that have to have one.
pub(crate) fn too_few_seats(found: Option<&TooFewSeats>) {
    #[cfg(feature = "tracing")]
    if let Some(problem) = found {
        tracing::error!(%problem, "some level has no seats: raise `server_concurrency`, or remove levels");
    }
    #[cfg(not(feature = "tracing"))]
    let _ = found;
}

/// Findings in objects that work.
#[cfg(feature = "check")]
pub(crate) fn findings(findings: &[evenkeel_check::Finding]) {
    for finding in findings {
        #[cfg(feature = "tracing")]
        tracing::warn!(
            rule = finding.rule.name(),
            kind = %finding.object.kind,
            name = %finding.object.name,
            "{}; {}; see {}",
            finding.message,
            finding.help,
            finding.rule.address()
        );
        #[cfg(not(feature = "tracing"))]
        let _ = finding;
    }
}

/// Warns of a flow control that nothing drives, although it was not set up to be driven by hand.
pub(crate) fn unkept() {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        "the flow control was built outside of a tokio runtime, so nothing drives it: build it inside a runtime, or use \
         `drive_by_hand` and call `tick` periodically"
    );
}

// === impl LogChoice ===

impl Default for LogChoice {
    fn default() -> Self {
        Self { service: None, warns_of_objects: true }
    }
}

// === impl Division ===

impl Division {
    /// The division that the controller has made.
    pub(crate) fn of(controller: &SeatController) -> Self {
        #[cfg(feature = "tracing")]
        return Self {
            fair_fraction: controller.fair_fraction(),
            levels: controller.levels().map(|(name, level)| LevelSeats::of(name, level)).collect(),
        };
        #[cfg(not(feature = "tracing"))]
        {
            let _ = controller;
            Self {}
        }
    }

    /// Sends the events.
    #[cfg_attr(not(feature = "tracing"), expect(clippy::unused_self, reason = "there is nothing to send"))]
    pub(crate) fn tell(&self) {
        #[cfg(feature = "tracing")]
        for level in &self.levels {
            tracing::debug!(
                priority_level = level.name,
                current_limit = level.current_limit,
                target = level.target,
                smoothed_demand = level.smoothed_demand,
                fair_fraction = self.fair_fraction,
                "seats divided"
            );
        }
    }
}

#[cfg(feature = "tracing")]
impl LevelSeats {
    fn of(name: &str, level: &ControlledLevel) -> Self {
        Self {
            name: name.to_owned(),
            current_limit: level.current_limit(),
            target: level.target(),
            smoothed_demand: level.statistics().smoothed,
        }
    }
}
