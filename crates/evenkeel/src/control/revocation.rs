//! Requests of revocable levels, and how a request is told to end (LM-7).
//!
//! Each request of a revocable level has a [`RevocationTicket`], and all tickets are in the [`Revoker`]. While there are tickets, the upkeep looks
//! whether requests of another level have waited for too long for seats of its own; without any it does not.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering as StdOrdering};
use std::task::{Context, Poll, Waker};

use evenkeel_engine::LevelId;
use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};
use tokio::sync::Notify;

use crate::sync::{AtomicI64, Mutex, MutexGuard, Ordering, PoisonError};

/// The requests of revocable levels.
#[derive(Debug)]
pub(crate) struct Revoker {
    /// How long requests wait for seats of their level before others end.
    after: AtomicI64,
    tickets: Mutex<RevocationTickets>,
    count: AtomicUsize,
    next_look: AtomicI64,
    /// Notified when the upkeep has to look from now on.
    news: Arc<Notify>,
}

type RevocationTickets = BTreeMap<(LevelId, RequestId), Arc<RevocationTicket>>;

/// A request that may be told to end.
#[derive(Debug)]
pub(crate) struct RevocationTicket {
    /// When it was told to end, or [`NOT_REVOKED`].
    revoked_at: AtomicI64,
    /// The task that drives its response.
    waker: Mutex<Option<Waker>>,
    /// Other tasks that wait for the request to be told to end.
    others: Notify,
}

/// How long requests wait by default for seats of their own level before others end.
pub(crate) const REVOKE_AFTER: Nanos = 500 * MILLISECOND;
const NOT_REVOKED: i64 = i64::MIN;
/// A request that was told to end and has not done so within this time is no longer waited for.
const PATIENCE: Nanos = SECOND;
/// The time between two looks while requests wait for others to end.
const SOON: Nanos = 20 * MILLISECOND;
/// The shortest and the longest time between two looks.
const LOOKS: (Nanos, Nanos) = (MILLISECOND, 250 * MILLISECOND);

// === impl Revoker ===

impl Revoker {
    pub(crate) fn new(news: Arc<Notify>) -> Self {
        Self {
            after: AtomicI64::new(REVOKE_AFTER),
            tickets: Mutex::default(),
            count: AtomicUsize::new(0),
            next_look: AtomicI64::new(0),
            news,
        }
    }

    pub(crate) fn after(&self) -> Nanos {
        self.after.load(Ordering::Relaxed)
    }

    pub(crate) fn set_after(&self, after: Nanos) {
        self.after.store(after.max(0), Ordering::Relaxed);
    }

    /// A request of a revocable level has arrived.
    #[cold]
    pub(crate) fn add(&self, level: LevelId, id: RequestId) -> Arc<RevocationTicket> {
        let ticket = Arc::new(RevocationTicket {
            revoked_at: AtomicI64::new(NOT_REVOKED),
            waker: Mutex::default(),
            others: Notify::new(),
        });
        self.lock().insert((level, id), Arc::clone(&ticket));
        if self.count.fetch_add(1, StdOrdering::AcqRel) == 0 {
            self.news.notify_one();
        }
        ticket
    }

    /// A request of a revocable level has ended.
    #[cold]
    pub(crate) fn remove(&self, level: LevelId, id: RequestId) {
        let removed = self.lock().remove(&(level, id));
        if removed.is_some() {
            self.count.fetch_sub(1, StdOrdering::AcqRel);
        }
        // A ticket may hold a waker, and dropping a waker may run any code.
        drop(removed);
    }

    /// Whether it is time to look for requests that have to end, or else when; `None` if no request could be told to end.
    pub(crate) fn look(&self, now: Instant) -> Option<Result<(), Instant>> {
        if self.count.load(StdOrdering::Acquire) == 0 {
            return None;
        }
        let next = Instant::from_nanos(self.next_look.load(Ordering::Relaxed));
        if now < next {
            return Some(Err(next));
        }
        self.look_after(now, (self.after() / 4).clamp(LOOKS.0, LOOKS.1));
        Some(Ok(()))
    }

    /// Requests wait for others to end.
    pub(crate) fn look_soon(&self, now: Instant) {
        self.look_after(now, (self.after() / 4).clamp(LOOKS.0, SOON));
    }

    fn look_after(&self, now: Instant, time: Nanos) {
        self.next_look.store((now + time).as_nanos(), Ordering::Relaxed);
    }

    /// The ticket of each request of a level that has one.
    pub(crate) fn tickets_of(&self, level: LevelId) -> Vec<(RequestId, Arc<RevocationTicket>)> {
        let tickets = self.lock();
        let of_level = tickets.iter().filter(|((of, _), _)| *of == level);
        of_level.map(|((_, id), ticket)| (*id, Arc::clone(ticket))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, RevocationTickets> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl RevocationTicket ===

impl RevocationTicket {
    /// The request is to end. No lock may be held.
    pub(crate) fn revoke(&self, now: Instant) {
        self.revoked_at.store(now.as_nanos(), Ordering::SeqCst);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.others.notify_waiters();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked_at.load(Ordering::SeqCst) != NOT_REVOKED
    }

    /// Whether the request was told to end, and may still do so.
    pub(crate) fn is_ending(&self, now: Instant) -> bool {
        self.is_revoked() && now - Instant::from_nanos(self.revoked_at.load(Ordering::SeqCst)) < PATIENCE
    }

    /// Ready if the request is to end. Of several tasks that ask, the last one is woken.
    pub(crate) fn poll_revoked(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_revoked() {
            return Poll::Ready(());
        }
        let mut waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = waker.as_ref().is_some_and(|known| known.will_wake(context.waker()));
        let before = if is_known { None } else { waker.replace(context.waker().clone()) };
        drop(waker);
        // Dropping a waker may run any code.
        drop(before);
        // The request may have been revoked before the waker was there.
        if self.is_revoked() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until the request is to end.
    pub(crate) async fn revoked(&self) {
        loop {
            let mut told = pin!(self.others.notified());
            told.as_mut().enable();
            if self.is_revoked() {
                return;
            }
            poll_fn(|context| told.as_mut().poll(context)).await;
        }
    }
}
