//! What is told to `tracing`, under the keys that the access log of Kubernetes has (HF-17). Without the feature,
//! nothing is.
//!
//! Nothing that happens to a single request is louder than `debug`: under load there is too much of it.

use evenkeel_engine::controller::{Controller, Unusable};
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::{Schema, WorkEstimate};

/// A request has to wait.
#[inline]
pub(crate) fn queued(schema: &Schema, work: WorkEstimate) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        apf_pl = %schema.level.name,
        apf_fs = %schema.name,
        apf_iseats = work.initial_seats,
        apf_fseats = work.final_seats,
        apf_additional_latency_ns = work.additional_latency,
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
        apf_pl = %schema.level.name,
        apf_fs = %schema.name,
        apf_iseats = work.initial_seats,
        apf_fseats = work.final_seats,
        reason = reason.as_str(),
        "the request is turned away"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, work, reason);
}

/// A waiting request has given up, or has waited as long as it may.
#[inline]
pub(crate) fn turned_away(schema: &Schema, reason: Rejection) {
    #[cfg(feature = "tracing")]
    tracing::debug!(
        apf_pl = %schema.level.name,
        apf_fs = %schema.name,
        reason = reason.as_str(),
        "the request has waited in vain"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = (schema, reason);
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

/// The seats were divided anew.
pub(crate) fn adjusted(controller: &Controller) {
    #[cfg(feature = "tracing")]
    for (name, level) in controller.levels() {
        tracing::debug!(
            priority_level = name,
            current_limit = level.current_limit(),
            target = level.target(),
            smoothed_demand = level.statistics().smoothed,
            fair_fraction = controller.fair_fraction(),
            "the seats are divided"
        );
    }
    #[cfg(not(feature = "tracing"))]
    let _ = controller;
}
