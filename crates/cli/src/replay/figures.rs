//! Figures of a report, as both outputs have them.

use evenkeel_engine::time::Nanos;
use evenkeel_replay::{Flow, FlowName};
use evenkeel_sim::LevelRecord;

/// Milliseconds, to the microsecond.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn milliseconds(nanos: Nanos) -> f64 {
    (nanos as f64 / 1e3).round() / 1e3
}

/// The name of a flow: its schema, and what tells it from other flows of the schema.
pub(crate) fn flow_name(name: &FlowName) -> String {
    match name.distinguisher.as_deref() {
        Some("") => name.schema.to_string(),
        Some(distinguisher) => format!("{}/{distinguisher}", name.schema),
        None => format!("{}/(other flows)", name.schema),
    }
}

/// The names of a flow under both configurations.
pub(crate) fn title(flow: &Flow) -> String {
    match &flow.names[..] {
        [before, after] if before != after && flow_name(before) != flow_name(after) => {
            format!("{} -> {}", flow_name(before), flow_name(after))
        }
        [.., name] => flow_name(name),
        [] => String::new(),
    }
}

/// How much of its own seats a level used, from 0 on; more than 1 if it borrowed.
#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub(crate) fn utilisation(level: &LevelRecord) -> f64 {
    let nominal = level.limits().nominal;
    if nominal > 0 { level.totals().seats_mean() / nominal as f64 } else { 0.0 }
}
