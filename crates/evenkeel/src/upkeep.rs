//! What has to be done from time to time: free the seats of requests that linger, divide the seats among the levels,
//! remove levels that have run out of requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::Instant;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::level::Level;
use crate::metrics::ServerMetrics;
use crate::sync::{AtomicBool, Mutex, Ordering, PoisonError};

/// The list of what is to be done, shared by all who add to it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) clock: Clock,
    pub(crate) server: ServerMetrics,
    lingering: Mutex<BinaryHeap<Reverse<Due>>>,
    wants_reapply: AtomicBool,
    /// Told when something is due earlier than before.
    pub(crate) news: Notify,
}

/// A lingering request and when its seats are to be free.
#[derive(Debug)]
pub(crate) struct Due {
    at: Instant,
    pub(crate) level: Arc<Level>,
    pub(crate) id: RequestId,
}

// === impl Upkeep ===

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        let server = ServerMetrics::new(clock.now());
        Self {
            clock,
            server,
            lingering: Mutex::new(BinaryHeap::new()),
            wants_reapply: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    /// Frees the seats of a lingering request at that time.
    pub(crate) fn release_at(&self, at: Instant, level: Arc<Level>, id: RequestId) {
        let mut lingering = self.lingering.lock().unwrap_or_else(PoisonError::into_inner);
        let is_next = lingering.peek().is_none_or(|Reverse(next)| at < next.at);
        lingering.push(Reverse(Due { at, level, id }));
        drop(lingering);
        if is_next {
            self.news.notify_one();
        }
    }

    /// The lingering request whose seats are to be free by now, and after that the time of the next one.
    pub(crate) fn next_due(&self, now: Instant) -> Result<Due, Option<Instant>> {
        let mut lingering = self.lingering.lock().unwrap_or_else(PoisonError::into_inner);
        match lingering.peek() {
            Some(Reverse(next)) if next.at <= now => lingering.pop().map(|Reverse(due)| due).ok_or(None),
            next => Err(next.map(|Reverse(next)| next.at)),
        }
    }

    /// A level may have run out of requests, and may be one that is to go then.
    pub(crate) fn note_idle_level(&self) {
        if !self.wants_reapply.swap(true, Ordering::AcqRel) {
            self.news.notify_one();
        }
    }

    /// Whether a level may have run out of requests since the last time this was asked.
    pub(crate) fn take_idle_note(&self) -> bool {
        self.wants_reapply.swap(false, Ordering::AcqRel)
    }
}

// === impl Due ===

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
