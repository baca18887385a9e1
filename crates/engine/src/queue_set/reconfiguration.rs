//! The configuration changes while requests are about (FQ-35, FQ-37).

use super::queue::Queue;
use super::{Effects, Mode, QueueSet, QueueSetConfig};
use crate::SeatSeconds;
use crate::time::Instant;

impl<T> QueueSet<T> {
    /// Changes the configuration. Nothing that runs is stopped and nothing that waits is turned away; queues that are
    /// no longer wanted go when they become empty.
    pub fn configure(&mut self, now: Instant, config: QueueSetConfig, effects: &mut impl Effects<T>) {
        self.synchronise(now, effects);
        self.install(config);
        self.dispatch(now, effects);
    }

    pub(super) fn install(&mut self, config: QueueSetConfig) {
        let queuing = match config.mode {
            Mode::Queue(queuing) => Some(queuing),
            Mode::Exempt | Mode::Reject | Mode::Closed => None,
        };
        if let Some(queuing) = queuing {
            self.queue_length_limit = queuing.queue_length_limit;
        }
        if self.order.len() < config.mode.queues() {
            self.add_queues(config.mode.queues());
        }
        // Making a dealer costs some divisions, and every level is configured anew every ten seconds.
        if self.mode != config.mode {
            self.placement.deal(queuing.map(|queuing| queuing.deal));
            self.mode = config.mode;
        }
        self.limit = config.concurrency_limit.max(0);
    }

    #[expect(clippy::cast_possible_truncation, reason = "a dealer deals from at most 2^26 queues")]
    fn add_queues(&mut self, queues: usize) {
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
        // So that a queue that goes, at the end of some request, needs no memory for that.
        self.free_queues.reserve_exact(self.queues.len() - self.free_queues.len());
        self.rebuild_ready();
    }
}
