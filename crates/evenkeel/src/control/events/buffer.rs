//! `EventBuffer`: the events of a level that have not been handed on yet. It is behind the lock of the level.

use evenkeel_engine::time::Instant;

use super::event::{Event, EventKind, EventSubject, LevelNumbers};

/// The events of a level that have not been handed on yet.
#[derive(Debug, Default)]
pub(crate) struct EventBuffer {
    events: Vec<Event>,
    /// The empty list, with room for a batch, that takes the place of `events` when they are taken.
    next: Vec<Event>,
    /// Where the events begin that have no numbers yet.
    open_from: usize,
    /// Whether some listener wants to hear of costs: of charges, and of what requests cost.
    pub(crate) hear_costs: bool,
}

/// How many events are handed on at a time: enough that two locks cost next to nothing for each, and so few that they stay in the
/// nearest cache.
pub(crate) const BATCH: usize = 64;
/// The number of events at which requests wait until the events have been handed on.
pub(crate) const BACKLOG_MAX: usize = 4 * BATCH;

// === impl EventBuffer ===

impl EventBuffer {
    /// Appends an event, whose numbers come when the call [ends](Self::end_call).
    #[inline]
    pub(crate) fn push(&mut self, at: Instant, subject: EventSubject, kind: EventKind) {
        self.append(Event::new(at, subject, kind, LevelNumbers::default()));
    }

    /// Appends the only event of a call. The level is like this afterwards.
    #[inline]
    pub(crate) fn push_only(&mut self, at: Instant, subject: EventSubject, kind: EventKind, level: LevelNumbers) {
        self.append(Event::new(at, subject, kind, LevelNumbers { is_last: true, ..level }));
        self.open_from = self.events.len();
    }

    /// Everything that a call brought about has been appended, and the level is like this.
    #[inline]
    pub(crate) fn end_call(&mut self, level: impl FnOnce() -> LevelNumbers) {
        let Some(open) = self.events.get_mut(self.open_from..).filter(|open| !open.is_empty()) else { return };
        let level = level();
        for event in open.iter_mut() {
            event.level = level;
        }
        if let Some(last) = open.last_mut() {
            last.level.is_last = true;
        }
        self.open_from = self.events.len();
    }

    /// Whether there are enough events to hand them on.
    #[inline]
    pub(crate) fn is_batch(&self) -> bool {
        self.events.len() >= BATCH
    }

    /// Whether there are so many that nothing should be added.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.events.len() >= BACKLOG_MAX
    }

    /// Takes all events. What is given back is a list that was taken before, which is empty now.
    pub(crate) fn take(&mut self, returned: Vec<Event>) -> Vec<Event> {
        debug_assert!(returned.is_empty() && self.open_from == self.events.len(), "a call has ended");
        if self.next.capacity() == 0 {
            self.next = returned;
        }
        self.open_from = 0;
        std::mem::replace(&mut self.events, std::mem::take(&mut self.next))
    }

    #[inline]
    fn append(&mut self, event: Event) {
        if self.events.len() == self.events.capacity() {
            self.grow();
        }
        self.events.push(event);
    }

    /// A level that is never used has no room for events. The first event allocates all that is needed later, so that other
    /// events allocate nothing.
    #[cold]
    fn grow(&mut self) {
        self.events.reserve(BATCH);
        if self.next.capacity() == 0 {
            self.next.reserve_exact(BATCH);
        }
    }
}
