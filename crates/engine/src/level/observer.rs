//! Observers of a level: attribution, dashboards, shadow configurations.

use std::fmt;

use super::NewRequest;
use super::long_running::LongRunning;
use crate::configuration::LevelId;
use crate::queue_set::{Effects, Ended, Rejection, RequestId};
use crate::time::Instant;

/// Sees what becomes of the requests of one level, as it happens. It changes no decision.
///
/// A request arrives; then it starts, at once or after it was queued, or is rejected; when it has started it finishes, and when its seats are
/// free it is released. [`RequestId::slot`] is an index for what an observer keeps with each request.
///
/// `()` is the observer that does nothing and costs nothing.
pub trait Observer: fmt::Debug {
    /// Whether the observer is interested at all. An observer that returns `false` may never be called.
    #[inline]
    fn is_active(&self) -> bool {
        true
    }

    /// A request arrives. If it is rejected at once, the next request gets the same id.
    fn arrived(&mut self, now: Instant, id: RequestId, request: &NewRequest<'_>) {
        let _ = (now, id, request);
    }

    /// A request that has arrived has to wait.
    fn queued(&mut self, now: Instant, id: RequestId) {
        let _ = (now, id);
    }

    /// A request starts.
    fn started(&mut self, now: Instant, id: RequestId) {
        let _ = (now, id);
    }

    /// A request that has started has so many seats from now on. Requests that start because of that are told of afterwards.
    fn resized(&mut self, now: Instant, id: RequestId, seats: u32) {
        let _ = (now, id, seats);
    }

    /// The handler of a request has returned. Requests that start because of that are told of afterwards.
    fn finished(&mut self, now: Instant, id: RequestId) {
        let _ = (now, id);
    }

    /// The seats of a request are free again, and the request is gone.
    fn released(&mut self, now: Instant, id: RequestId) {
        let _ = (now, id);
    }

    /// A request is rejected and gone: on arrival, to make room for another one, because it has waited too long, or because it
    /// was cancelled.
    fn rejected(&mut self, now: Instant, id: RequestId, reason: Rejection) {
        let _ = (now, id, reason);
    }
}

/// Makes an observer for each level. A closure that takes the level's id and its name is one.
pub trait ObserveLevels {
    /// The observer of a level.
    type Observer: Observer;

    /// A level of that name comes into being.
    fn observe(&mut self, level: LevelId, name: &str) -> Self::Observer;
}

/// Passes the effects of a queue set on to an observer and to the count of long-running requests, as well as to the caller.
pub(super) struct Observed<'a, O, E> {
    now: Instant,
    observer: &'a mut O,
    long_running: &'a mut LongRunning,
    effects: &'a mut E,
}

// === impl Observer ===

impl Observer for () {
    #[inline]
    fn is_active(&self) -> bool {
        false
    }
}

impl<O: Observer + ?Sized> Observer for Box<O> {
    fn is_active(&self) -> bool {
        (**self).is_active()
    }

    fn arrived(&mut self, now: Instant, id: RequestId, request: &NewRequest<'_>) {
        (**self).arrived(now, id, request);
    }

    fn queued(&mut self, now: Instant, id: RequestId) {
        (**self).queued(now, id);
    }

    fn started(&mut self, now: Instant, id: RequestId) {
        (**self).started(now, id);
    }

    fn resized(&mut self, now: Instant, id: RequestId, seats: u32) {
        (**self).resized(now, id, seats);
    }

    fn finished(&mut self, now: Instant, id: RequestId) {
        (**self).finished(now, id);
    }

    fn released(&mut self, now: Instant, id: RequestId) {
        (**self).released(now, id);
    }

    fn rejected(&mut self, now: Instant, id: RequestId, reason: Rejection) {
        (**self).rejected(now, id, reason);
    }
}

/// An observer that may be absent. Where that is decided at run time, its absence costs a comparison for each event.
impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn is_active(&self) -> bool {
        self.as_ref().is_some_and(Observer::is_active)
    }

    #[inline]
    fn arrived(&mut self, now: Instant, id: RequestId, request: &NewRequest<'_>) {
        if let Some(observer) = self {
            observer.arrived(now, id, request);
        }
    }

    #[inline]
    fn queued(&mut self, now: Instant, id: RequestId) {
        if let Some(observer) = self {
            observer.queued(now, id);
        }
    }

    #[inline]
    fn started(&mut self, now: Instant, id: RequestId) {
        if let Some(observer) = self {
            observer.started(now, id);
        }
    }

    #[inline]
    fn resized(&mut self, now: Instant, id: RequestId, seats: u32) {
        if let Some(observer) = self {
            observer.resized(now, id, seats);
        }
    }

    #[inline]
    fn finished(&mut self, now: Instant, id: RequestId) {
        if let Some(observer) = self {
            observer.finished(now, id);
        }
    }

    #[inline]
    fn released(&mut self, now: Instant, id: RequestId) {
        if let Some(observer) = self {
            observer.released(now, id);
        }
    }

    #[inline]
    fn rejected(&mut self, now: Instant, id: RequestId, reason: Rejection) {
        if let Some(observer) = self {
            observer.rejected(now, id, reason);
        }
    }
}

// === impl ObserveLevels ===

impl ObserveLevels for () {
    type Observer = ();

    fn observe(&mut self, _level: LevelId, _name: &str) {}
}

impl<F, O> ObserveLevels for F
where
    F: FnMut(LevelId, &str) -> O,
    O: Observer,
{
    type Observer = O;

    fn observe(&mut self, level: LevelId, name: &str) -> O {
        self(level, name)
    }
}

// === impl Observed ===

impl<'a, O, E> Observed<'a, O, E> {
    #[inline]
    pub(super) fn new(
        now: Instant,
        observer: &'a mut O,
        long_running: &'a mut LongRunning,
        effects: &'a mut E,
    ) -> Self {
        Self { now, observer, long_running, effects }
    }
}

impl<T, O: Observer, E: Effects<T>> Effects<T> for Observed<'_, O, E> {
    #[inline]
    fn started(&mut self, id: RequestId, payload: &mut T) {
        self.observer.started(self.now, id);
        self.long_running.started(id);
        self.effects.started(id, payload);
    }

    #[inline]
    fn blocked(&mut self, payload: &T) {
        self.effects.blocked(payload);
    }

    #[inline]
    fn epoch_advanced(&mut self, clean: bool) {
        self.effects.epoch_advanced(clean);
    }

    fn displaced(&mut self, ended: Ended<T>) {
        self.observer.rejected(self.now, ended.id, Rejection::QueueFull);
        self.long_running.ended(ended.id);
        self.effects.displaced(ended);
    }

    #[inline]
    fn timed_out(&mut self, ended: Ended<T>) {
        self.effects.timed_out(ended);
    }
}
