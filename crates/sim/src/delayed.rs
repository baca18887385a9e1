//! `Delayed`: a request that waits for the rate of its flow, without a seat (RL-2).

use std::cmp::Ordering;

use evenkeel_engine::time::Nanos;

use crate::accounts::AccountId;
use crate::new_request::{Class, NewRequest};

/// A request that waits until it goes on to its level.
#[derive(Debug)]
pub(crate) struct Delayed<T> {
    /// When it goes on, or looks again whether it may.
    pub(crate) at: Nanos,
    /// It waits until then at most.
    pub(crate) latest: Nanos,
    pub(crate) sequence: u64,
    pub(crate) arrived: Nanos,
    pub(crate) class: Class,
    pub(crate) request: NewRequest<T>,
    pub(crate) account: AccountId,
}

// === impl Delayed ===

impl<T> Ord for Delayed<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<T> PartialOrd for Delayed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Delayed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Delayed<T> {}
