//! What is told to `tracing`. Without the feature, nothing is.
//!
//! Requests that wait or are turned away are told of under the keys that the access log of Kubernetes has (HF-17):
//! `apf_pl`, `apf_fs`, `apf_iseats`, `apf_fseats` and `apf_additionalLatency`. Requests that are let in are not told of, so
//! that `apf_execution_time` and `apf_init_latency` are not given: metrics have them.
//!
//! Nothing that happens to a single request is louder than `debug`: under load there is too much of it.

#[cfg(feature = "tracing")]
use std::time::Duration;

use evenkeel_api::Kind;
use evenkeel_api::annotations::NotUnderstood;
#[cfg(feature = "tracing")]
use evenkeel_engine::controller::ControlledLevel;
use evenkeel_engine::controller::{Dangling, Unusable};
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::{Schema, WorkEstimate};

use crate::control::seat_division::SeatController;

/// How the seats were divided, to be told when no lock is held any more: a subscriber may look at the flow control.
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
        "the request waits in its queue"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, work);
}

/// A request is turned away.
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
        "the request is turned away"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, work, reason);
}

/// A waiting request has given up, or has waited as long as it may.
#[inline]
pub(crate) fn gave_up(schema: &Schema, reason: Rejection) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        apf_pl = short(&schema.level.name),
        apf_fs = short(&schema.name),
        reason = reason.as_str(),
        "the request has waited in vain"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, reason);
}

/// Flow schemas were given whose levels do not exist.
pub(crate) fn dangling(schemas: &[Dangling]) {
    for Dangling { schema, level, .. } in schemas {
        #[cfg(feature = "tracing")]
        tracing::warn!(
            flow_schema = %schema,
            priority_level = %level,
            "the flow schema is ignored: its priority level does not exist or cannot be used"
        );
        #[cfg(not(feature = "tracing"))]
        let _ = (schema, level);
    }
}

/// Levels were given that cannot be used.
pub(crate) fn unusable(levels: &[(String, Unusable)]) {
    for (name, reason) in levels {
        #[cfg(feature = "tracing")]
        tracing::warn!(priority_level = %name, %reason, "the priority level cannot be used and is ignored");
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
    tracing::warn!(
        "the server has no seats, so that hardly any request runs: tell the builder its `server_concurrency`, at least 1"
    );
}

/// Nobody looks after a flow control that was not to be driven by hand.
pub(crate) fn unkept() {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        "the flow control was built outside of a tokio runtime, so that nothing looks after it: build it inside of one, or \
         ask the builder for `drive_by_hand` and call `tick` from time to time"
    );
}

// === impl Division ===

impl Division {
    /// What the controller has divided.
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

    /// The seats were divided anew.
    #[cfg_attr(not(feature = "tracing"), expect(clippy::unused_self, reason = "there is nothing to tell"))]
    pub(crate) fn tell(&self) {
        #[cfg(feature = "tracing")]
        for level in &self.levels {
            tracing::debug!(
                priority_level = level.name,
                current_limit = level.current_limit,
                target = level.target,
                smoothed_demand = level.smoothed_demand,
                fair_fraction = self.fair_fraction,
                "the seats are divided"
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
