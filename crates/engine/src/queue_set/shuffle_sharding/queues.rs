//! Queues are added and removed (FQ-35, FQ-36).

use super::ShuffleSharding;
use super::queue::{DETACHED, Queue};
use crate::SeatSeconds;

impl ShuffleSharding {
    #[expect(clippy::cast_possible_truncation, reason = "a dealer deals from at most 2^26 queues")]
    pub(super) fn add_queues(&mut self, queues: usize) {
        let more = queues - self.order.len();
        self.queues.reserve_exact(more.saturating_sub(self.free_queues.len()));
        self.order.reserve_exact(more);
        self.waiting_work.reserve_exact(more);
        for index in self.order.len()..queues {
            let queue = Queue::new(index as u32);
            let slot = match self.free_queues.pop() {
                Some(slot) => {
                    self.queues[slot as usize] = queue;
                    slot
                }
                None => {
                    self.queues.push(queue);
                    self.queues.len() as u32 - 1
                }
            };
            self.order.push(slot);
        }
        self.waiting_work.resize(queues, SeatSeconds::ZERO);
        // So that the removal of a queue, at the end of some request, needs no memory.
        self.free_queues.reserve_exact(self.queues.len() - self.free_queues.len());
        self.rebuild_ready();
    }

    /// A queue that has become empty goes if there are more queues than wanted (FQ-36).
    ///
    /// The reference looks a second time when another request of a queue that has gone stops lingering, and then takes
    /// an innocent queue away (KW-15). Here a queue that has gone stays gone.
    #[inline]
    pub(super) fn remove_if_surplus(&mut self, slot: u32) {
        let queue = &self.queues[slot as usize];
        if queue.index == DETACHED {
            if queue.lingering == 0 {
                self.free_queues.push(slot);
            }
        } else if self.order.len() > self.queues_wanted && !queue.is_active() {
            self.remove_queue(slot);
        }
    }

    #[cold]
    fn remove_queue(&mut self, slot: u32) {
        let queue = &mut self.queues[slot as usize];
        let index = std::mem::replace(&mut queue.index, DETACHED) as usize;
        self.meter.seats_requested -= queue.seats_in_use;
        if queue.lingering == 0 {
            self.free_queues.push(slot);
        }
        self.order.remove(index);
        self.waiting_work.remove(index);
        for &later in &self.order[index..] {
            self.queues[later as usize].index -= 1;
        }
        if usize::try_from(self.robin).is_ok_and(|robin| robin >= index) {
            self.robin -= 1;
        }
        self.rebuild_ready();
    }

    /// Builds the index of the queues anew, after a change to all of them.
    pub(super) fn rebuild_ready(&mut self) {
        let queues = &self.queues;
        self.ready.rebuild(self.order.iter().map(|&slot| Queue::finish(&queues[slot as usize])));
    }
}
