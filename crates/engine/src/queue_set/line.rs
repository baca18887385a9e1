//! The waiting requests of one queue, oldest first: a list whose links are in the requests themselves.
//!
//! So a request that gives up leaves at once, wherever it stands, and a queue needs no memory of its own. What
//! dispatching asks of the oldest request is kept here, since it is asked again and again.

use super::requests::{NO_SLOT, Place, Requests, Stage};
use crate::SeatSeconds;

/// Waiting requests in the order of arrival.
#[derive(Debug, Clone)]
pub(super) struct Line {
    front: Front,
    last: u32,
    length: u32,
}

/// The oldest request of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Front {
    pub(super) slot: u32,
    pub(super) max_seats: u32,
    pub(super) arrival_r: SeatSeconds,
    pub(super) total_work: SeatSeconds,
}

// === impl Line ===

impl Line {
    pub(super) fn new() -> Self {
        Self { front: Front::NOBODY, last: NO_SLOT, length: 0 }
    }

    /// How many requests wait.
    pub(super) fn len(&self) -> usize {
        self.length as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The oldest request.
    #[inline]
    pub(super) fn front(&self) -> Option<&Front> {
        if self.is_empty() { None } else { Some(&self.front) }
    }

    /// The place of a request that comes last.
    #[inline]
    pub(super) fn next_place(&self, arrival_r: SeatSeconds, total_work: SeatSeconds) -> Place {
        Place { previous: self.last, next: NO_SLOT, arrival_r, total_work }
    }

    /// Adds a request that was given the [next place](Self::next_place).
    #[inline]
    pub(super) fn push_back<T>(&mut self, requests: &mut Requests<T>, slot: u32) {
        if let Some(last) = requests.place_mut(self.last) {
            last.next = slot;
        } else {
            self.front = Front::of(requests, slot);
        }
        self.last = slot;
        self.length += 1;
    }

    /// Takes a request out. Its place is what it was told when it came, with the links as they are now.
    #[inline]
    pub(super) fn remove<T>(&mut self, requests: &mut Requests<T>, place: Place) {
        match requests.place_mut(place.next) {
            Some(next) => next.previous = place.previous,
            None => self.last = place.previous,
        }
        match requests.place_mut(place.previous) {
            Some(previous) => previous.next = place.next,
            None => self.front = Front::of(requests, place.next),
        }
        self.length -= 1;
    }

    /// Winds back what is read off the progress meter.
    pub(super) fn wind_back<T>(&mut self, requests: &mut Requests<T>, mut wind_back: impl FnMut(&mut SeatSeconds)) {
        let mut slot = self.front.slot;
        while let Some(place) = requests.place_mut(slot) {
            wind_back(&mut place.arrival_r);
            slot = place.next;
        }
        self.front = Front::of(requests, self.front.slot);
    }

    /// The slots of the waiting requests, oldest first.
    pub(super) fn slots<T>(&self, requests: &Requests<T>) -> impl Iterator<Item = u32> {
        let first = (!self.is_empty()).then_some(self.front.slot);
        std::iter::successors(first, |&slot| match requests.in_slot(slot)?.1.stage {
            Stage::Waiting(place) => Some(place.next).filter(|&next| next != NO_SLOT),
            _ => None,
        })
    }
}

// === impl Front ===

impl Front {
    const NOBODY: Self =
        Self { slot: NO_SLOT, max_seats: 0, arrival_r: SeatSeconds::ZERO, total_work: SeatSeconds::ZERO };

    #[inline]
    fn of<T>(requests: &Requests<T>, slot: u32) -> Self {
        match requests.in_slot(slot) {
            Some((_, request)) => match request.stage {
                Stage::Waiting(Place { arrival_r, total_work, .. }) => {
                    Self { slot, max_seats: request.work.max_seats(), arrival_r, total_work }
                }
                _ => Self::NOBODY,
            },
            None => Self::NOBODY,
        }
    }
}
