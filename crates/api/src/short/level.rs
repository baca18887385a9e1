//! `ShortLevel`: a level in the words of the short form.

use std::time::Duration;

use crate::v1::CONCURRENCY_SHARES_DEFAULT;

use super::QUEUE_DEFAULT;

/// A level: its share of the seats, what it lends and borrows, and how many requests wait in it.
///
/// ```
/// use evenkeel_api::short::{Part, ShortLevel};
///
/// let level = ShortLevel::default().share(70).lend(50).borrow(Part::All).queue(500).per_client(50);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct ShortLevel {
    pub(super) share: Option<i64>,
    pub(super) lend: Option<Part>,
    pub(super) borrow: Option<Part>,
    pub(super) queue: Option<i64>,
    pub(super) per_client: Option<i64>,
    pub(super) wait: Option<Duration>,
    pub(super) reject: bool,
    pub(super) max_long_running: Option<i64>,
    pub(super) revocable: bool,
}

/// A part of the seats of a level.
///
/// Not `#[non_exhaustive]`: the short form has these two words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// So many in a hundred.
    Percent(i64),
    /// All of them; for borrowing: as many as there are.
    All,
}

// === impl ShortLevel ===

impl ShortLevel {
    /// The keys of a level.
    pub const KEYS: [&'static str; 9] =
        ["share", "lend", "borrow", "queue", "perClient", "wait", "reject", "maxLongRunning", "revocable"];

    /// Its share of the seats, in proportion to those of all levels; 30 if it does not say. With 0, it rejects everything.
    pub fn share(mut self, share: u32) -> Self {
        self.share = Some(share.into());
        self
    }

    /// How much of its own seats other levels may use while they are idle; nothing if it does not say.
    pub fn lend(mut self, part: impl Into<Part>) -> Self {
        self.lend = Some(part.into());
        self
    }

    /// How many seats it may borrow, in percent of its own; as many as there are if it does not say.
    pub fn borrow(mut self, part: impl Into<Part>) -> Self {
        self.borrow = Some(part.into());
        self
    }

    /// How many requests may wait; 200 if it does not say.
    pub fn queue(mut self, requests: u32) -> Self {
        self.queue = Some(requests.into());
        self
    }

    /// How many requests of one client may wait; about a tenth of the queue if it does not say.
    pub fn per_client(mut self, requests: u32) -> Self {
        self.per_client = Some(requests.into());
        self
    }

    /// How long a request waits for a seat; as the server says if it does not say.
    pub fn wait(mut self, limit: Duration) -> Self {
        self.wait = Some(limit);
        self
    }

    /// Nothing waits: a request that finds no seat is rejected.
    pub fn reject(mut self) -> Self {
        self.reject = true;
        self
    }

    /// How many long-running requests it has at a time; without a limit if it does not say.
    pub fn max_long_running(mut self, requests: u32) -> Self {
        self.max_long_running = Some(requests.into());
        self
    }

    /// Its youngest requests end when requests of another level wait although that level uses fewer seats than its own.
    pub fn revocable(mut self) -> Self {
        self.revocable = true;
        self
    }

    /// The shares that it has.
    pub(super) fn shares(&self) -> i64 {
        self.share.unwrap_or_else(|| CONCURRENCY_SHARES_DEFAULT.into())
    }

    /// How many requests wait in all, and of one client.
    ///
    /// What a client may have waiting divides what all may, so that both are whole numbers of Kubernetes' queues: it is the
    /// smallest such number that is a tenth or more.
    pub(super) fn waiting(&self) -> (i64, i64) {
        match (self.queue, self.per_client) {
            (Some(queue), Some(per_client)) => (queue, per_client),
            (None, Some(per_client)) => (per_client.saturating_mul(10), per_client),
            (queue, None) => {
                let queue = queue.unwrap_or(QUEUE_DEFAULT);
                (queue, default_per_client(queue))
            }
        }
    }
}

/// The smallest divisor of the queue that is a tenth of it or more.
pub(super) fn default_per_client(queue: i64) -> i64 {
    // A divisor of a tenth or more is the queue divided by ten or less.
    (1..=10).rev().find(|parts| queue % parts == 0).map_or(queue, |parts| queue / parts)
}

// === impl Part ===

impl From<i32> for Part {
    fn from(percent: i32) -> Self {
        Self::Percent(percent.into())
    }
}

impl From<u32> for Part {
    fn from(percent: u32) -> Self {
        Self::Percent(percent.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sf_2_a_client_may_have_about_a_tenth_waiting() {
        for (queue, per_client) in
            [(500, 50), (200, 20), (10, 1), (5, 1), (1, 1), (25, 5), (12, 2), (503, 503), (999, 111)]
        {
            assert_eq!(ShortLevel::default().queue(queue).waiting(), (i64::from(queue), per_client), "{queue}");
        }
        assert_eq!(ShortLevel::default().waiting(), (200, 20));
        assert_eq!(ShortLevel::default().per_client(7).waiting(), (70, 7));
    }
}
