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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkEstimate;
    use crate::queue_set::requests::{NO_QUEUE, Request, RequestId};
    use crate::time::Instant;
    use proptest::prelude::*;

    /// A line, a neighbour that uses the same slots, and what should be in each.
    struct Neighbours {
        requests: Requests<u64>,
        lines: [Line; 2],
        plain: [Vec<(RequestId, u64)>; 2],
        pushed: u64,
    }

    impl Neighbours {
        /// A request whose numbers all tell which one it is.
        fn push(&mut self, which: usize) {
            self.pushed += 1;
            let number = self.pushed;
            let units = SeatSeconds::from_units;
            let place = self.lines[which].next_place(units(number), units(2 * number));
            let id = self.requests.insert(Request {
                stage: Stage::Waiting(place),
                queue: NO_QUEUE,
                work: WorkEstimate { initial_seats: u32::try_from(number).unwrap(), ..WorkEstimate::ONE_SEAT },
                arrived: Instant::from_nanos(0),
                payload: number,
            });
            self.lines[which].push_back(&mut self.requests, id.slot_number());
            self.plain[which].push((id, number));
        }

        /// As a request that gives up goes: out of the slots first, and then out of the line.
        fn cancel(&mut self, which: usize, position: usize) {
            let (id, number) = self.plain[which].remove(position);
            let request = self.requests.remove(id).unwrap();
            assert_eq!(request.payload, number);
            let Stage::Waiting(place) = request.stage else { panic!("{number} does not wait") };
            self.lines[which].remove(&mut self.requests, place);
        }

        /// As a request that starts goes: it stays in its slot.
        fn start(&mut self, which: usize) {
            let (id, _) = self.plain[which].remove(0);
            let request = self.requests.get_mut(id).unwrap();
            let Stage::Waiting(place) = request.stage else { panic!("{id:?} does not wait") };
            request.stage = Stage::Executing { started: Instant::from_nanos(0) };
            self.lines[which].remove(&mut self.requests, place);
        }

        fn check(&self) {
            for (line, plain) in self.lines.iter().zip(&self.plain) {
                assert_eq!((line.len(), line.is_empty()), (plain.len(), plain.is_empty()));
                let slots: Vec<_> = line.slots(&self.requests).collect();
                assert_eq!(slots, plain.iter().map(|(id, _)| id.slot_number()).collect::<Vec<_>>());
                let found = line.front().map(|front| (front.slot, front.max_seats, front.arrival_r, front.total_work));
                let expected = plain.first().map(|&(id, number)| {
                    let units = SeatSeconds::from_units;
                    (id.slot_number(), u32::try_from(number).unwrap(), units(number), units(2 * number))
                });
                assert_eq!(found, expected);
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Start,
        Cancel(prop::sample::Index),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => Just(Step::Push),
            1 => Just(Step::Start),
            2 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        ]
    }

    proptest! {
        #[test]
        fn a_line_is_a_list_from_which_anybody_may_leave(steps in prop::collection::vec((0_usize..2, step()), 1..200)) {
            let (lines, plain) = ([Line::new(), Line::new()], [Vec::new(), Vec::new()]);
            let mut lines = Neighbours { requests: Requests::new(), lines, plain, pushed: 0 };
            for (which, step) in steps {
                match (step, lines.plain[which].len()) {
                    (Step::Push, _) => lines.push(which),
                    (_, 0) => {}
                    (Step::Start, _) => lines.start(which),
                    (Step::Cancel(index), length) => lines.cancel(which, index.index(length)),
                }
                lines.check();
            }
        }

        #[test]
        fn winding_back_reaches_everybody_who_waits(pushed in 0_u64..50) {
            let (lines, plain) = ([Line::new(), Line::new()], [Vec::new(), Vec::new()]);
            let mut lines = Neighbours { requests: Requests::new(), lines, plain, pushed: 100 };
            (0..pushed).for_each(|_| lines.push(0));
            let [line, _] = &mut lines.lines;
            line.wind_back(&mut lines.requests, |reading| *reading -= SeatSeconds::from_units(100));
            prop_assert_eq!(line.front().map(|front| front.arrival_r.units()), (pushed > 0).then_some(1));
            for (position, slot) in (1..).zip(lines.lines[0].slots(&lines.requests).collect::<Vec<_>>()) {
                prop_assert_eq!(lines.requests.place_mut(slot).map(|place| place.arrival_r.units()), Some(position));
            }
        }
    }
}
