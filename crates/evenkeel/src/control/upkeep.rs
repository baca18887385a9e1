//! What has to be done from time to time: free the seats of requests that linger, divide the seats among the levels,
//! remove levels that have run out of requests.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::Instant;
use tokio::sync::Notify;

use crate::control::clock::Clock;
use crate::control::level::{Level, Wakers};
use crate::observe::metrics::ServerMetrics;
use crate::sync::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError};

/// The list of what is to be done, shared by all who add to it.
#[derive(Debug)]
pub(crate) struct Upkeep {
    pub(crate) clock: Clock,
    pub(crate) server: ServerMetrics,
    lingering: Mutex<Lingering>,
    wants_reapply: AtomicBool,
    /// Whether requests have waited that no timer wakes.
    lacks_timers: AtomicBool,
    /// Told when something is due earlier than before.
    pub(crate) news: Notify,
}

/// The requests that linger.
#[derive(Debug, Default)]
struct Lingering {
    due: BinaryHeap<Reverse<Due>>,
    /// Whether nobody looks after them any more.
    is_closed: bool,
}

/// A lingering request and when its seats are to be free.
#[derive(Debug)]
struct Due {
    at: Instant,
    level: Arc<Level>,
    id: RequestId,
}

// === impl Upkeep ===

impl Upkeep {
    pub(crate) fn new(clock: Clock) -> Self {
        let server = ServerMetrics::new(clock.now());
        Self {
            clock,
            server,
            lingering: Mutex::new(Lingering::default()),
            wants_reapply: AtomicBool::new(false),
            lacks_timers: AtomicBool::new(false),
            news: Notify::new(),
        }
    }

    /// Frees the seats of a lingering request at that time, or now if the flow control is gone.
    pub(crate) fn release_at(&self, at: Instant, level: Arc<Level>, id: RequestId, wakers: &mut Wakers) {
        let due = Due { at, level, id };
        let mut lingering = self.lingering();
        if lingering.is_closed {
            drop(lingering);
            self.release(&due, wakers);
            return;
        }
        let is_next = lingering.due.peek().is_none_or(|Reverse(next)| at < next.at);
        lingering.due.push(Reverse(due));
        drop(lingering);
        if is_next {
            self.news.notify_one();
        }
    }

    /// Frees the seats of requests that have lingered, and tells when the next one has.
    pub(crate) fn release_lingering(&self) -> Option<Instant> {
        loop {
            match self.next_due(self.clock.now()) {
                Ok(due) => {
                    let mut wakers = Wakers::default();
                    self.release(&due, &mut wakers);
                    wakers.wake();
                }
                Err(next) => return next,
            }
        }
    }

    /// The flow control is gone. Nobody looks at the time any more, so that nothing lingers from now on: requests that
    /// still wait must not wait for seats that nobody frees.
    pub(crate) fn close(&self) {
        let mut lingering = self.lingering();
        lingering.is_closed = true;
        let due = std::mem::take(&mut lingering.due);
        drop(lingering);
        let mut wakers = Wakers::default();
        for Reverse(due) in &due {
            self.release(due, &mut wakers);
        }
        // The keeper ends at once, and not when it would have had something to do.
        self.news.notify_one();
        wakers.wake();
    }

    /// The lingering request whose seats are to be free by now, and after that the time of the next one.
    fn next_due(&self, now: Instant) -> Result<Due, Option<Instant>> {
        let mut lingering = self.lingering();
        match lingering.due.peek() {
            Some(Reverse(next)) if next.at <= now => lingering.due.pop().map(|Reverse(due)| due).ok_or(None),
            next => Err(next.map(|Reverse(next)| next.at)),
        }
    }

    fn release(&self, due: &Due, wakers: &mut Wakers) {
        let now = self.clock.now();
        self.server.before_event(now);
        let mut state = due.level.lock();
        let now = state.at(now);
        let released = state.release(now, due.id, wakers);
        let queues = state.take_queues();
        drop(state);
        // To drop it may run anything: see `Admission::is_started_or_wake`.
        drop((released, queues));
    }

    fn lingering(&self) -> MutexGuard<'_, Lingering> {
        self.lingering.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A request waits that no timer wakes when its time is over: whoever ticks has to.
    pub(crate) fn note_wait_without_timer(&self) {
        self.lacks_timers.store(true, Ordering::Release);
    }

    /// Whether there may be requests that no timer wakes.
    pub(crate) fn lacks_timers(&self) -> bool {
        self.lacks_timers.load(Ordering::Acquire)
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
