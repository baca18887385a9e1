//! `Wakers`: the effects of a level's event that are carried out after the lock of the level has been given back.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::task::Waker;

use evenkeel_engine::queue_set::{Effects, Ended, RequestId};

use crate::control::core::Belongings;
use crate::control::counts::Mark;
use crate::control::ledger::{Grant, Handover};
use crate::control::rare_list::RareList;

/// Collects the tasks to be woken and the seats for other levels until the lock has been given back, and notes for the listeners
/// until the event is over.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// Nearly every event starts one request at most, which needs no memory.
    first: Option<Waker>,
    others: RareList<Waker>,
    /// Requests that have given way to others (PF-7).
    pub(crate) displaced: RareList<Ended<Mark>>,
    /// The belongings of such requests. To be dropped without the lock.
    pub(crate) dropped: RareList<Belongings>,
    pub(crate) handover: Handover,
    pub(crate) notes: Notes,
}

/// The effects of an event of the queue set, until the event is over and appended for the listeners.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// Nearly every event starts one request at most.
    pub(crate) first_started: Option<RequestId>,
    pub(crate) others_started: RareList<RequestId>,
    /// The series of the request that all others wait for.
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

    /// Passes seats on to other levels, and wakes all tasks. To be called without any lock.
    #[inline]
    pub(crate) fn wake(self) {
        if self.is_unused() {
            // No field has anything to drop. Finding that out field by field would take a dozen calls for each request.
            std::mem::forget(self);
        } else {
            self.wake_somebody();
        }
    }

    /// Whether there is no task to wake, and no memory to give back.
    #[inline]
    fn is_unused(&self) -> bool {
        let Self { first, others, displaced, dropped, handover, notes } = self;
        first.is_none()
            && others.is_unused()
            && displaced.is_unused()
            && dropped.is_unused()
            && handover.is_unused()
            && notes.others_started.is_unused()
    }

    #[inline(never)]
    fn wake_somebody(mut self) {
        if !self.handover.is_empty() {
            self.start_granted();
        }
        let Some(first) = self.first else { return };
        if self.others.is_empty() {
            first.wake();
        } else {
            wake_all(std::iter::once(first).chain(self.others));
        }
    }

    /// Starts requests of other levels on the seats that they were granted. No lock of a level may be held.
    #[cold]
    pub(crate) fn start_granted(&mut self) {
        while let Some(grant) = self.handover.next() {
            let Grant { level, .. } = &grant;
            level.lock().start_granted(&grant, self);
        }
    }
}

/// Calls all wakers, even if some of them panic. The first panic goes on when all have been called.
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

impl Effects<Mark> for Wakers {
    #[inline]
    fn started(&mut self, id: RequestId, _mark: &mut Mark) {
        self.notes.note_start(id);
    }

    fn blocked(&mut self, mark: &Mark) {
        self.notes.blocked = Some(mark.series);
    }

    fn displaced(&mut self, ended: Ended<Mark>) {
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
