//! The events of a level: what the queue set decides, counted as it happens.

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Arrival, Finish, Mode, Phase, QueueSetConfig, RequestId};
use evenkeel_engine::time::Instant;

use crate::control::level::{LevelState, Waiter, Wakers};
use crate::observe::metrics::{Ending, Passed};

/// A request on its way into a level.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) flow_hash: u64,
    pub(crate) work: WorkEstimate,
    pub(crate) waiter: Waiter,
    /// How many watches it concerns, if that was asked (WE-18).
    pub(crate) watches: Option<u64>,
}

// === impl LevelState ===

impl LevelState {
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, arriving: Arriving, wakers: &mut Wakers) -> Arrival<Waiter> {
        let Arriving { flow_hash, work, waiter, watches } = arriving;
        let mark = waiter.mark;
        let arrival = self.queue_set.arrive(now, flow_hash, work, waiter, wakers);
        let queue = match &arrival {
            Arrival::Started { id, queue } if wakers.notes.tell_only_of(*id) && !self.narrows(work) => {
                wakers.notes.first_started = None;
                let passed = self.passed(*queue);
                self.metrics.passed(mark, work, watches, passed);
                self.metrics.take_over(now, &self.queue_set);
                return arrival;
            }
            Arrival::Started { queue, .. } => *queue,
            Arrival::Waiting { queue, .. } => Some(*queue),
            Arrival::Rejected { reason, .. } => {
                self.metrics.rejected(mark, work, watches, *reason);
                self.settle(now, wakers);
                return arrival;
            }
        };
        self.metrics.arrived(mark, work, watches, &self.queue_set, &wakers.notes, queue);
        self.settle(now, wakers);
        arrival
    }

    /// A request ends, whatever it was doing: one that runs finishes, one that waits gives up.
    #[inline]
    pub(crate) fn finish(&mut self, now: Instant, id: RequestId, wakers: &mut Wakers) -> Option<Finish<Waiter>> {
        let ending = self.ending(id, Phase::Executing)?;
        let finish = self.queue_set.finish(now, id, wakers);
        self.metrics.finished(now, ending);
        if let Some(Finish::Released(_)) = &finish {
            self.metrics.released(ending);
        }
        self.settle(now, wakers);
        finish
    }

    pub(crate) fn cancel(&mut self, now: Instant, id: RequestId, wakers: &mut Wakers) -> Option<Waiter> {
        let ending = self.ending(id, Phase::Waiting)?;
        let waiter = self.queue_set.cancel(now, id, wakers)?;
        self.metrics.gave_up(now, ending);
        self.settle(now, wakers);
        Some(waiter)
    }

    pub(crate) fn release(&mut self, now: Instant, id: RequestId, wakers: &mut Wakers) -> Option<Waiter> {
        let ending = self.ending(id, Phase::Lingering)?;
        let waiter = self.queue_set.release(now, id, wakers)?;
        self.metrics.released(ending);
        self.settle(now, wakers);
        Some(waiter)
    }

    pub(crate) fn configure(&mut self, now: Instant, config: QueueSetConfig, wakers: &mut Wakers) {
        self.queue_set.configure(now, config, wakers);
        self.settle(now, wakers);
    }

    /// Whether the level takes seats from a request that starts (FQ-23).
    #[inline]
    fn narrows(&self, work: WorkEstimate) -> bool {
        i64::from(work.final_seats) > self.queue_set.concurrency_limit()
    }

    /// What a request that was started at once went through.
    #[inline]
    fn passed(&self, queue: Option<usize>) -> Passed {
        match queue {
            Some(queue) => Passed::Queue { length: self.queue_set.queue_length(queue) + 1 },
            None if self.queue_set.mode() == Mode::Exempt => Passed::Exempt,
            None => Passed::NoQueue,
        }
    }

    #[inline]
    fn ending(&self, id: RequestId, phase: Phase) -> Option<Ending> {
        self.queue_set.request(id).map(|request| Ending::of(&request)).filter(|ending| ending.phase() == phase)
    }

    #[inline]
    fn settle(&mut self, now: Instant, wakers: &mut Wakers) {
        self.metrics.settle(now, &self.queue_set, &mut wakers.notes);
    }
}
