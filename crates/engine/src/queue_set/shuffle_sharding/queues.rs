//! Queues are added and removed (FQ-35, FQ-36), and those of many that are not in use are forgotten.

use super::ShuffleSharding;
use super::numbers::{AllQueues, Numbers, UsedQueues};
use super::queue::{DETACHED, Queue};
use crate::SeatSeconds;

impl ShuffleSharding {
    /// Makes room for at least that many queues.
    pub(super) fn grow(&mut self, queues: usize) {
        let count = self.numbers.count().max(queues);
        let is_table = matches!(self.numbers, Numbers::All(_));
        if is_table != (count <= self.table_max) {
            self.change_index();
        }
        match &mut self.numbers {
            Numbers::Used(used) => used.count = count,
            Numbers::All(all) if all.order.len() < count => self.add_queues(count),
            Numbers::All(_) => {}
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a dealer deals from at most 2^26 queues")]
    fn add_queues(&mut self, queues: usize) {
        let Numbers::All(all) = &mut self.numbers else { return };
        let more = queues - all.order.len();
        self.queues.reserve_exact(more.saturating_sub(self.free_queues.len()));
        all.order.reserve_exact(more);
        all.waiting_work.reserve_exact(more);
        for index in all.order.len()..queues {
            all.order.push(new_queue(&mut self.queues, &mut self.free_queues, index as u32));
        }
        all.waiting_work.resize(queues, SeatSeconds::ZERO);
        // Reserved here, so that the removal of a queue at the end of a request allocates nothing.
        self.free_queues.reserve_exact(self.queues.len() - self.free_queues.len());
        self.rebuild_ready();
    }

    /// Keeps an index of the queues in use, however few queues there are.
    pub(in crate::queue_set) fn index_used_queues(&mut self) {
        self.table_max = 0;
        self.grow(0);
    }

    /// From a table of all queues to an index of those in use, or back. Queues in use keep their slots.
    #[cold]
    fn change_index(&mut self) {
        let count = self.numbers.count();
        let in_use: Vec<(u32, u32)> = match &self.numbers {
            Numbers::All(all) => (0..).zip(all.order.iter().copied()).collect(),
            Numbers::Used(used) => used.iter().collect(),
        };
        let waiting_work: Vec<_> =
            in_use.iter().map(|(number, _)| self.numbers.waiting_work(*number as usize)).collect();
        if matches!(self.numbers, Numbers::All(_)) {
            let mut used = UsedQueues::new(count);
            for (number, slot) in &in_use {
                used.insert(*number, *slot);
            }
            self.numbers = Numbers::Used(used);
        } else {
            self.numbers = Numbers::All(AllQueues::new());
            self.add_queues(count);
            for &(number, slot) in &in_use {
                if let Numbers::All(all) = &mut self.numbers {
                    let unused = std::mem::replace(&mut all.order[number as usize], slot);
                    self.queues[unused as usize].index = DETACHED;
                    self.free_queues.push(unused);
                }
            }
        }
        for ((number, slot), work) in in_use.into_iter().zip(waiting_work) {
            self.numbers.change_waiting_work(number, |waiting| *waiting = work);
            self.update_ready(slot);
            self.forget_if_unused(slot);
        }
    }

    /// The slot of a queue that was chosen for a request.
    #[inline]
    pub(super) fn slot_for(&mut self, number: usize) -> u32 {
        match self.numbers.slot(number) {
            Some(slot) => slot,
            None => self.use_queue(number),
        }
    }

    /// A queue of many comes into use.
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "a dealer deals from at most 2^26 queues")]
    fn use_queue(&mut self, number: usize) -> u32 {
        if let Numbers::Used(used) = &mut self.numbers
            && let Some(chosen) = used.chosen.take()
        {
            self.forget_if_unused(chosen);
        }
        let slot = new_queue(&mut self.queues, &mut self.free_queues, number as u32);
        if let Numbers::Used(used) = &mut self.numbers {
            used.insert(number as u32, slot);
            used.chosen = Some(slot);
        }
        slot
    }

    /// Forgets a queue of many if it has become empty. What it was charged counts no more: it would start from the present
    /// progress anyway (FQ-19).
    #[inline]
    pub(super) fn forget_if_unused(&mut self, slot: u32) {
        if let Numbers::Used(used) = &mut self.numbers {
            let queue = &mut self.queues[slot as usize];
            if queue.index != DETACHED && !queue.is_active() && queue.lingering == 0 {
                used.remove(std::mem::replace(&mut queue.index, DETACHED));
                self.free_queues.push(slot);
            }
        }
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
        } else if self.numbers.count() > self.queues_wanted && !queue.is_active() {
            self.remove_queue(slot);
        } else {
            self.forget_if_unused(slot);
        }
    }

    #[cold]
    fn remove_queue(&mut self, slot: u32) {
        let queue = &mut self.queues[slot as usize];
        let number = std::mem::replace(&mut queue.index, DETACHED);
        self.meter.seats_requested -= queue.seats_in_use;
        if queue.lingering == 0 {
            self.free_queues.push(slot);
        }
        match &mut self.numbers {
            Numbers::All(all) => {
                all.order.remove(number as usize);
                all.waiting_work.remove(number as usize);
                for &later in &all.order[number as usize..] {
                    self.queues[later as usize].index -= 1;
                }
                self.rebuild_ready();
            }
            Numbers::Used(used) => {
                used.remove(number);
                used.move_up(number);
                for (moved, slot) in used.iter() {
                    self.queues[slot as usize].index = moved;
                }
            }
        }
        if self.robin >= i64::from(number) {
            self.robin -= 1;
        }
    }

    /// Builds the index of the queues anew, after a change to all of them.
    pub(super) fn rebuild_ready(&mut self) {
        let queues = &self.queues;
        match &mut self.numbers {
            Numbers::All(all) => {
                all.ready.rebuild(all.order.iter().map(|&slot| Queue::finish(&queues[slot as usize])));
            }
            Numbers::Used(used) => {
                let in_use: Vec<(u32, u32)> = used.iter().collect();
                for (_, slot) in in_use {
                    self.update_ready(slot);
                }
            }
        }
    }
}

/// A slot with a new queue of that number.
fn new_queue(queues: &mut Vec<Queue>, free_queues: &mut Vec<u32>, number: u32) -> u32 {
    let queue = Queue::new(number);
    match free_queues.pop() {
        Some(slot) => {
            queues[slot as usize] = queue;
            slot
        }
        None => {
            queues.push(queue);
            u32::try_from(queues.len() - 1).unwrap_or(DETACHED)
        }
    }
}
