//! `Wakers`: what an event of a level brings about that is to be done when the lock of the level has been given back.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

use evenkeel_engine::queue_set::{Effects, Ended, RequestId};

use crate::control::core::Waiter;
use crate::control::ledger::{Grant, Handover};
use crate::control::rare_list::RareList;

/// Collects those to be woken, so that they are woken when the lock has been given back, and what is to be told to the listeners before
/// that. The same for seats that go to another level.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// Nearly every event starts one request at most, which needs no memory.
    first: Option<Waker>,
    others: RareList<Waker>,
    /// Requests that have given way to others (PF-7). To be dropped without the lock.
    pub(crate) displaced: RareList<Ended<Waiter>>,
    pub(crate) handover: Handover,
    pub(crate) notes: Notes,
}

/// What an event of the queue set brought about, until it is over and told to the listeners.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Nearly every event starts one request at most.
    pub(crate) first_started: Option<RequestId>,
    pub(crate) others_started: RareList<RequestId>,
    /// The series of the request that everybody waits for.
    pub(crate) blocked: Option<u32>,
    pub(crate) epoch_advanced: Option<bool>,
}

// === impl Wakers ===

impl Wakers {
    #[inline]
    pub(crate) fn extend(&mut self, waker: Option<Waker>) {
        if self.first.is_none() {
            self.first = waker;
        } else {
            self.others.extend(waker);
        }
    }

    /// Takes the wakers of requests that have given way to others.
    pub(crate) fn take_displaced_wakers(&mut self) {
        for ended in self.displaced.iter_mut() {
            let waker = ended.payload.waker.take();
            if self.first.is_none() {
                self.first = waker;
            } else {
                self.others.extend(waker);
            }
        }
    }

    /// Passes seats on to other levels, and wakes everybody. To be called without any lock.
    #[inline]
    pub(crate) fn wake(self) {
        if self.first.is_some() || !self.handover.is_empty() {
            self.wake_somebody();
        }
    }

    #[inline(never)]
    fn wake_somebody(mut self) {
        if !self.handover.is_empty() {
            self.hand_over();
        }
        let Some(first) = self.first else { return };
        if self.others.is_empty() {
            first.wake();
        } else {
            wake_all(std::iter::once(first).chain(self.others));
        }
    }

    /// Starts requests of other levels on the seats that they were granted.
    #[cold]
    fn hand_over(&mut self) {
        while let Some(grant) = self.handover.next() {
            let Grant { level, .. } = &grant;
            level.lock().start_granted(&grant, self);
        }
    }
}

/// Wakes everybody, also if some of them panic. The first panic goes on when all have been woken.
fn wake_all(wakers: impl Iterator<Item = Waker>) {
    let mut panic = None;
    for waker in wakers {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| waker.wake())) {
            panic.get_or_insert(payload);
        }
    }
    if let Some(payload) = panic {
        resume_unwind(payload);
    }
}

impl Effects<Waiter> for Wakers {
    #[inline]
    fn started(&mut self, id: RequestId, waiter: &mut Waiter) {
        self.notes.note_start(id);
        self.extend(waiter.waker.take());
    }

    fn blocked(&mut self, waiter: &Waiter) {
        self.notes.blocked = Some(waiter.mark.series);
    }

    fn displaced(&mut self, ended: Ended<Waiter>) {
        self.displaced.push(ended);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        self.notes.epoch_advanced = Some(clean);
    }
}

// === impl Notes ===

impl Notes {
    #[inline]
    pub(crate) fn note_start(&mut self, id: RequestId) {
        if self.first_started.is_none() {
            self.first_started = Some(id);
        } else {
            self.others_started.push(id);
        }
    }

    /// Whether the event did nothing but start this request.
    #[inline]
    pub(crate) fn tell_only_of(&self, id: RequestId) -> bool {
        self.first_started == Some(id)
            && self.others_started.is_empty()
            && self.blocked.is_none()
            && self.epoch_advanced.is_none()
    }

    /// Whether the event did nothing else than what its caller knows.
    #[inline]
    pub(crate) fn tell_nothing(&self) -> bool {
        self.first_started.is_none() && self.blocked.is_none() && self.epoch_advanced.is_none()
    }

    pub(crate) fn started(&self) -> impl Iterator<Item = RequestId> {
        self.first_started.into_iter().chain(self.others_started.iter().copied())
    }
}
