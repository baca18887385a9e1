//! The waiting requests of one queue, oldest first: a list whose links are in the requests themselves.
//!
//! So a request that gives up leaves at once, wherever it is, and a queue needs no memory of its own. The figures of the oldest
//! request that dispatching needs are kept here, since they are read again and again.

use super::super::requests::{Links, NO_SLOT, Requests, Stage};
use super::virtual_time::total_work;
use crate::SeatSeconds;

/// Waiting requests in the order of arrival.
#[derive(Debug, Clone)]
pub(super) struct Line {
    front: Front,
    last: u32,
    /// How many requests from the front on have been fetched.
    near: u32,
}

/// How many requests are fetched at a time.
const FETCHED: u32 = 8;

/// The oldest request of a line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Front {
    pub(super) slot: u32,
    pub(super) max_seats: u32,
    /// The virtual time at its arrival.
    pub(super) arrival_r: SeatSeconds,
    /// What it is charged up front.
    pub(super) total_work: SeatSeconds,
}

// === impl Line ===

impl Line {
    pub(super) fn new() -> Self {
        Self { front: Front::nobody(), last: NO_SLOT, near: 0 }
    }

    /// Whether nobody waits.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.front.slot == NO_SLOT
    }

    /// The oldest request.
    #[inline]
    pub(super) fn front(&self) -> Option<&Front> {
        if self.is_empty() { None } else { Some(&self.front) }
    }

    /// Adds the waiting request in that slot.
    #[inline]
    pub(super) fn push_back<T>(&mut self, requests: &mut Requests<T>, slot: u32) {
        if let Some(links) = requests.links_mut(slot) {
            *links = Links { previous: self.last, next: NO_SLOT };
        }
        if self.is_empty() {
            self.front = Front::of(requests, slot);
        } else if let Some(last) = requests.links_mut(self.last) {
            last.next = slot;
        }
        self.last = slot;
    }

    /// Takes the request in that slot out. It may have been started already.
    #[inline]
    pub(super) fn remove<T>(&mut self, requests: &mut Requests<T>, slot: u32) {
        let Some(Links { previous, next }) = requests.links(slot) else { return };
        match requests.links_mut(next) {
            Some(next) => next.previous = previous,
            None => self.last = previous,
        }
        match requests.links_mut(previous) {
            Some(previous) => previous.next = next,
            None => {
                if self.near == 0 {
                    requests.fetch(next, FETCHED);
                    self.near = FETCHED;
                }
                self.near -= 1;
                self.front = Front::of(requests, next);
            }
        }
    }

    /// Changes the virtual times at the arrivals of all.
    pub(super) fn for_each<T>(&mut self, requests: &mut Requests<T>, mut change: impl FnMut(&mut SeatSeconds)) {
        let mut slot = self.front.slot;
        while let Some(request) = requests.slot_mut(slot) {
            if let Stage::Waiting { arrival_r, .. } = &mut request.stage {
                change(arrival_r);
            }
            slot = requests.links(slot).map_or(NO_SLOT, |links| links.next);
        }
        self.front = Front::of(requests, self.front.slot);
    }
}

// === impl Front ===

impl Front {
    fn nobody() -> Self {
        Self { slot: NO_SLOT, max_seats: 0, arrival_r: SeatSeconds::ZERO, total_work: SeatSeconds::ZERO }
    }

    #[inline]
    fn of<T>(requests: &Requests<T>, slot: u32) -> Self {
        match requests.slot(slot) {
            Some(request) => Self {
                slot,
                max_seats: request.work.max_seats(),
                arrival_r: request.arrival_r().unwrap_or_default(),
                total_work: total_work(request.work),
            },
            None => Self::nobody(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkEstimate;
    use crate::queue_set::requests::{NO_QUEUE, Request, RequestId, Run};
    use crate::time::Instant;
    use proptest::prelude::*;

    fn slots(line: &Line, requests: &Requests<u64>) -> Vec<u32> {
        let first = line.front().map(|front| front.slot);
        let next = |&slot: &u32| Some(requests.links(slot)?.next).filter(|&next| next != NO_SLOT);
        std::iter::successors(first, next).collect()
    }

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
            let work = WorkEstimate { initial_seats: u32::try_from(number).unwrap(), ..WorkEstimate::ONE_SEAT };
            let stage = self.requests.begin_waiting(SeatSeconds::from_units(2 * number), number, 1);
            let id = self.requests.insert(stage, NO_QUEUE, work, Instant::from_nanos(0), number);
            self.lines[which].push_back(&mut self.requests, id.slot_number());
            self.plain[which].push((id, number));
        }

        /// A request gives up: it leaves its line and then its slot.
        fn cancel(&mut self, which: usize, position: usize) {
            let (id, number) = self.plain[which].remove(position);
            self.lines[which].remove(&mut self.requests, id.slot_number());
            assert_eq!(self.requests.remove(id), Some(number));
        }

        /// A request starts: it stays in its slot.
        fn start(&mut self, which: usize) {
            let (id, _) = self.plain[which].remove(0);
            self.requests.get_mut(id).unwrap().stage = Stage::Executing(Run::starting(Instant::from_nanos(0)));
            self.lines[which].remove(&mut self.requests, id.slot_number());
        }

        fn check(&self) {
            for (line, plain) in self.lines.iter().zip(&self.plain) {
                assert_eq!(line.is_empty(), plain.is_empty());
                let slots = slots(line, &self.requests);
                assert_eq!(slots, plain.iter().map(|(id, _)| id.slot_number()).collect::<Vec<_>>());
                let found = line.front().map(|front| (front.slot, front.max_seats, front.arrival_r.units()));
                let expected =
                    plain.first().map(|&(id, number)| (id.slot_number(), u32::try_from(number).unwrap(), 2 * number));
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
        fn a_change_reaches_everybody_who_waits(pushed in 0_u64..50) {
            let (lines, plain) = ([Line::new(), Line::new()], [Vec::new(), Vec::new()]);
            let mut lines = Neighbours { requests: Requests::new(), lines, plain, pushed: 100 };
            (0..pushed).for_each(|_| lines.push(0));
            let [line, _] = &mut lines.lines;
            line.for_each(&mut lines.requests, |arrival_r| *arrival_r -= SeatSeconds::from_units(200));
            prop_assert_eq!(line.front().map(|front| front.arrival_r.units()), (pushed > 0).then_some(2));
            for (position, slot) in (1..).zip(slots(line, &lines.requests)) {
                prop_assert_eq!(lines.requests.slot(slot).and_then(Request::arrival_r).map(SeatSeconds::units), Some(2 * position));
            }
        }
    }
}
