//! A limit that finds itself, in a frame.

use evenkeel::limit::{Elasticity, LimitReason, LimitState, LimitStep};
use serde::{Deserialize, Serialize};

use super::{is_default, rounded};

/// A limit that finds itself: what it is, what it does, and why (AL-7).
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Limit {
    /// The number of seats that is believed to be right.
    pub seats: f64,
    /// The number in effect: that of a trial or a probe, or with room for bursts.
    pub applied: u32,
    /// The lower bound, or the fewest seats that the levels need if that is more.
    pub least: u32,
    /// The upper bound.
    pub most: u32,
    /// Whether it was found, in this run or an earlier one.
    pub is_known: bool,
    /// What it is doing: `holding`, `measuring-base`, `trying`, `probing-up` or `probing-down`.
    pub phase: String,
    /// How much the service has to do: `light`, `burst` or `overload`.
    pub load: String,
    /// The latest estimate of what more seats bring, and its standard deviation.
    #[serde(skip_serializing_if = "is_default")]
    pub elasticity: Option<[f64; 2]>,
    /// Nothing is tried above this for a while.
    #[serde(skip_serializing_if = "is_default")]
    pub ceiling: Option<f64>,
    /// How far bursts may go above it at light load.
    pub room: f64,
    /// The instance of the fleet that finds it for all, if it is another one.
    #[serde(skip_serializing_if = "is_default")]
    pub found_by: Option<String>,
    /// Whether an outside signal keeps it from rising.
    #[serde(skip_serializing_if = "is_default")]
    pub is_held_down: bool,
    /// The latest decisions, the oldest first.
    #[serde(skip_serializing_if = "is_default")]
    pub steps: Vec<Step>,
}

/// A decision of the limit.
///
/// Not `#[non_exhaustive]`: a frame is data that other programs make too; `frame::VERSION` tells of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Step {
    /// The number of the decision: each has one more than the one before.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The limit before it, and the limit that it leads to.
    pub from: u32,
    /// See `from`.
    pub to: u32,
    /// The limit that was tried, if one was.
    #[serde(skip_serializing_if = "is_default")]
    pub tried: Option<u32>,
    /// What happened, and why, in one sentence without a full stop.
    pub text: String,
}

// === impl Limit ===

impl Limit {
    /// The state of a limit at a time, in milliseconds since 1970, with so many of its latest decisions. Probes that change nothing are left
    /// out: there are many of them.
    pub fn new(state: &LimitState, time_ms: u64, steps_max: usize) -> Self {
        let status = &state.status;
        let told = |step: &&LimitStep| !step.change.reason.is_routine() || step.change.from != step.change.to;
        let mut steps: Vec<Step> =
            state.steps.iter().rev().filter(told).take(steps_max).map(|step| Step::new(step, time_ms)).collect();
        steps.reverse();
        let least = state.floor.max(*state.bounds.start());
        Self {
            seats: rounded(status.limit),
            applied: status.applied,
            least,
            most: least.max(*state.bounds.end()),
            is_known: status.is_known,
            phase: status.phase.as_str().to_owned(),
            load: status.load.as_str().to_owned(),
            elasticity: status
                .elasticity
                .map(|Elasticity { value, deviation, .. }| [rounded(value), rounded(deviation)]),
            ceiling: status.ceiling.map(rounded),
            room: rounded(status.room),
            found_by: state.found_by.clone(),
            is_held_down: state.is_held_down,
            steps,
        }
    }

    /// Why the limit has its value, in one sentence: the latest decision that says so.
    pub fn because(&self) -> &str {
        if self.found_by.is_some() {
            return "another instance of the fleet finds it for all, and knows why";
        }
        self.steps.last().map_or("nothing has been tried yet: no request had to wait for long", |step| &step.text)
    }
}

// === impl Step ===

impl Step {
    fn new(step: &LimitStep, time_ms: u64) -> Self {
        let ago = u64::try_from(step.ago.as_millis()).unwrap_or(u64::MAX);
        let tried = match step.change.reason {
            LimitReason::Trial { tried, .. } => Some(tried),
            _ => None,
        };
        Self {
            number: step.number,
            time_ms: time_ms.saturating_sub(ago),
            from: step.change.from,
            to: step.change.to,
            tried,
            text: step.change.to_string(),
        }
    }
}
