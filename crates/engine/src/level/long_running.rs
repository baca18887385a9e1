//! The long-running requests of a level that wait or hold seats. Those that hold seats do not borrow (LB-5).

use crate::queue_set::RequestId;

/// Which requests of a level are long-running, and how many seats they hold.
#[derive(Debug, Default)]
pub(super) struct LongRunning {
    /// By the slots of the requests; shorter than that while there are none, so that ordinary requests cost nothing.
    slots: Vec<RequestState>,
    /// The seats of those that have started.
    seats: i64,
}

/// The request in a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum RequestState {
    /// The request is not long-running, or is gone.
    #[default]
    Other,
    /// A long-running request of that many seats waits.
    Waiting(u32),
    /// The request holds the seats.
    Started(u32),
}

// === impl LongRunning ===

impl LongRunning {
    /// A long-running request has to wait.
    pub(super) fn wait(&mut self, id: RequestId, seats: u32) {
        self.set(id, RequestState::Waiting(seats));
    }

    /// A long-running request has started without having waited.
    pub(super) fn start(&mut self, id: RequestId, seats: u32) {
        self.set(id, RequestState::Started(seats));
        self.seats += i64::from(seats);
    }

    /// Any request has started.
    #[inline]
    pub(super) fn started(&mut self, id: RequestId) {
        if let Some(RequestState::Waiting(seats)) = self.slots.get(id.slot()).copied() {
            self.start(id, seats);
        }
    }

    /// Any request that has started has so many seats from now on.
    pub(super) fn resize(&mut self, id: RequestId, seats: u32) {
        if let Some(RequestState::Started(held)) = self.slots.get_mut(id.slot()) {
            self.seats += i64::from(seats) - i64::from(*held);
            *held = seats;
        }
    }

    /// Any request is gone: its seats are free, or it no longer waits.
    #[inline]
    pub(super) fn ended(&mut self, id: RequestId) {
        let Some(slot) = self.slots.get_mut(id.slot()) else { return };
        if let RequestState::Started(seats) = std::mem::take(slot) {
            self.seats -= i64::from(seats);
        }
    }

    /// Whether it is a long-running request that waits.
    pub(super) fn is_waiting(&self, id: RequestId) -> bool {
        matches!(self.slots.get(id.slot()), Some(RequestState::Waiting(_)))
    }

    /// The seats that long-running requests hold.
    pub(super) fn seats(&self) -> i64 {
        self.seats
    }

    fn set(&mut self, id: RequestId, slot: RequestState) {
        if self.slots.len() <= id.slot() {
            self.slots.resize(id.slot() + 1, RequestState::Other);
        }
        if let Some(place) = self.slots.get_mut(id.slot()) {
            *place = slot;
        }
    }
}
