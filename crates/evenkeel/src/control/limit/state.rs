//! `LimitState`: the limit that finds itself, for views and for people.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use evenkeel_engine::auto_limit::{LimitChange, LimitStatus};

/// A limit that finds itself: its value, what it is doing, and why (AL-7).
/// [`FlowControl::limit_state`](crate::FlowControl::limit_state) gives it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LimitState {
    /// The bounds that the limit stays in.
    pub bounds: RangeInclusive<u32>,
    /// The fewest seats that the levels need. The limit is never lower.
    pub floor: u32,
    /// The instance of the fleet that finds the limit for all, if it is another one: that one knows why (FL-13).
    pub found_by: Option<String>,
    /// Whether an [outside signal](crate::FlowControl::hold_limit) keeps the limit from rising.
    pub is_held_down: bool,
    /// The limit itself.
    pub status: LimitStatus,
    /// How many decisions there have been, by reason: see [`LimitReason::as_str`](evenkeel_engine::auto_limit::LimitReason::as_str).
    pub counts: BTreeMap<&'static str, u64>,
    /// The latest changes and decisions, with their reasons; the oldest first. At most 256.
    pub steps: Vec<LimitStep>,
}

/// Something that the limit did, or decided not to do.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LimitStep {
    /// The number of the decision: each has one more than the one before.
    pub number: u64,
    /// How long ago it happened.
    pub ago: Duration,
    /// What happened. As a text, it is a sentence.
    pub change: LimitChange,
}
