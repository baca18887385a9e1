//! The events of a level: what the queue set decides, counted as it happens.

use std::sync::Arc;

use evenkeel_engine::borrowing::{Granted, Stake};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::{Arrival, Effects, Ended, Finish, Mode, Phase, QueueSetConfig, Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Flow, WorkEstimate};

use crate::control::counts::{Ending, Passed};
use crate::control::ledger::{Grant, SharedLedger};
use crate::control::level::{EngineLevel, Level, LevelState, Waiter, Wakers};

/// A request on its way into a level.
#[derive(Debug)]
pub(crate) struct Arriving<'a> {
    pub(crate) flow: Flow<'a>,
    pub(crate) work: WorkEstimate,
    /// How long it waits at most.
    pub(crate) wait_until: Instant,
    pub(crate) waiter: Waiter,
    /// How many watches it concerns, if that was asked (WE-18).
    pub(crate) watches: Option<u64>,
    /// Whether it holds its seats for long (LB-5).
    pub(crate) is_long_running: bool,
}

/// Collects requests whose time is over, and what else an event brings about.
struct TimedOut<'a> {
    wakers: &'a mut Wakers,
    ended: Vec<Ended<Waiter>>,
}

// === impl LevelState ===

impl LevelState {
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, arriving: Arriving<'_>, wakers: &mut Wakers) -> Arrival<Waiter> {
        let Arriving { flow, work, wait_until, waiter, watches, is_long_running } = arriving;
        let mark = waiter.mark;
        let work = self.queue_set().fitted(work);
        let mut request = NewRequest::new(flow, work).wait_until(wait_until);
        request.is_long_running = is_long_running;
        if work.is_seatless() {
            request = request.seatless();
        }
        let arrival = match &self.grants {
            None => self.level.arrive(now, request, waiter, wakers),
            Some(grants) => {
                let mut account = grants.account();
                let arrival = self.level.arrive_by_grant(now, request, waiter, wakers, &mut account);
                wakers.handover.add(account.handover);
                arrival
            }
        };
        if !wakers.displaced.is_empty() {
            self.note_displaced(now, wakers);
        }
        let queue = match &arrival {
            Arrival::Started { id, queue } if wakers.notes.tell_only_of(*id) && !self.narrows(work) => {
                wakers.notes.first_started = None;
                let passed = self.passed(*queue);
                self.metrics.passed(mark, work, watches, passed);
                self.metrics.take_over(now, self.level.queue_set());
                self.note_drain(now, 0);
                self.start_own_grants(wakers);
                return arrival;
            }
            Arrival::Started { queue, .. } => *queue,
            Arrival::Waiting { queue, .. } => Some(*queue),
            Arrival::Rejected { reason, .. } => {
                self.metrics.rejected(mark, work, watches, *reason);
                self.settle(now, 0, wakers);
                self.start_own_grants(wakers);
                return arrival;
            }
        };
        self.metrics.arrived(mark, work, watches, self.level.queue_set(), &wakers.notes, queue);
        self.settle(now, 0, wakers);
        self.start_own_grants(wakers);
        arrival
    }

    /// A request ends, whatever it was doing: one that runs finishes, one that waits gives up.
    #[inline]
    pub(crate) fn finish(&mut self, now: Instant, id: RequestId, wakers: &mut Wakers) -> Option<Finish<Waiter>> {
        let ending = self.ending(id, Phase::Executing)?;
        let finish = self.event(now, wakers, |level, wakers| level.finish(now, id, wakers));
        self.metrics.finished(now, ending);
        let is_released = matches!(finish, Some(Finish::Released(_)));
        if is_released {
            self.metrics.released(ending);
        }
        self.settle(now, u64::from(is_released && ending.has_seats()), wakers);
        self.start_own_grants(wakers);
        finish
    }

    /// A waiting request gives up, and is counted with this reason.
    pub(crate) fn cancel(
        &mut self,
        now: Instant,
        id: RequestId,
        reason: Rejection,
        wakers: &mut Wakers,
    ) -> Option<Waiter> {
        let ending = self.ending(id, Phase::Waiting)?;
        let waiter = self.event(now, wakers, |level, wakers| level.cancel(now, id, wakers))?;
        self.metrics.gave_up(now, ending, reason);
        self.settle(now, 0, wakers);
        self.start_own_grants(wakers);
        Some(waiter)
    }

    /// The flow of an executing request is charged more or less seat-time. Tells whether the request is executing.
    pub(crate) fn charge(&mut self, now: Instant, id: RequestId, seat_time: Nanos, wakers: &mut Wakers) -> bool {
        let is_charged = self.event(now, wakers, |level, wakers| level.charge(now, id, seat_time, wakers));
        self.settle(now, 0, wakers);
        self.start_own_grants(wakers);
        is_charged
    }

    /// An executing request holds so many seats from now on. Tells how many it holds; `None` if it is not executing or takes no
    /// seat.
    pub(crate) fn set_seats(&mut self, now: Instant, id: RequestId, seats: u32, wakers: &mut Wakers) -> Option<u32> {
        let before = self.event(now, wakers, |level, wakers| level.set_seats(now, id, seats, wakers))?;
        let request = self.queue_set().request(id)?;
        let (after, mark) = (request.work.max_seats(), request.payload.mark);
        self.metrics.resized(mark, before, after);
        self.settle(now, 0, wakers);
        self.start_own_grants(wakers);
        Some(after)
    }

    pub(crate) fn release(&mut self, now: Instant, id: RequestId, wakers: &mut Wakers) -> Option<Waiter> {
        let ending = self.ending(id, Phase::Lingering)?;
        let waiter = self.event(now, wakers, |level, wakers| level.release(now, id, wakers))?;
        self.metrics.released(ending);
        self.settle(now, 1, wakers);
        self.start_own_grants(wakers);
        Some(waiter)
    }

    pub(crate) fn configure(&mut self, now: Instant, config: QueueSetConfig, wakers: &mut Wakers) {
        self.event(now, wakers, |level, wakers| level.configure(now, config, wakers));
        self.settle(now, 0, wakers);
    }

    /// The level takes part in the ledger, by these terms.
    pub(crate) fn join_ledger(
        &mut self,
        now: Instant,
        level: &Arc<Level>,
        stake: Stake,
        ledger: &Arc<SharedLedger>,
        wakers: &mut Wakers,
    ) {
        let now = self.at(now);
        let in_use = self.queue_set().seats_in_use();
        let widest = ledger.join(level, stake, &mut self.grants, in_use);
        if let Some(grants) = &self.grants {
            let mut account = grants.account();
            self.level.begin_grants(now, widest, wakers, &mut account);
            wakers.handover.add(account.handover);
        }
        self.settle(now, 0, wakers);
    }

    /// The level no longer takes part in a ledger: a limit says what starts.
    pub(crate) fn leave_ledger(&mut self, wakers: &mut Wakers) {
        if self.grants.take().is_some() {
            let now = self.latest;
            self.level.end_grants(now, wakers);
            self.settle(now, 0, wakers);
        }
    }

    /// Starts requests on seats that an event of this level has brought the level itself. Its lock is held already; if the seats
    /// were handed over without it, they would be idle while the thread is interrupted, and arrivals would find them so.
    #[inline]
    fn start_own_grants(&mut self, wakers: &mut Wakers) {
        if !wakers.handover.is_empty() {
            self.start_all_own_grants(wakers);
        }
    }

    #[cold]
    fn start_all_own_grants(&mut self, wakers: &mut Wakers) {
        while let Some(grant) = self.grants.as_ref().and_then(|grants| wakers.handover.next_for(grants)) {
            self.start_granted(&grant, wakers);
        }
    }

    /// Starts requests on seats that the ledger has granted, unless the level no longer takes part in it.
    pub(crate) fn start_granted(&mut self, grant: &Grant, wakers: &mut Wakers) {
        let Some(grants) = self.grants.as_ref().filter(|grants| grants.is_for(grant)) else { return };
        let now = self.latest;
        grants.receive(grant);
        let mut account = grants.account();
        self.level.start_granted(now, grant.granted, wakers, &mut account);
        wakers.handover.add(account.handover);
        self.settle(now, 0, wakers);
    }

    /// Lets something other than an arrival happen in the level.
    #[inline]
    fn event<R>(
        &mut self,
        now: Instant,
        wakers: &mut Wakers,
        event: impl FnOnce(&mut EngineLevel, &mut Wakers) -> R,
    ) -> R {
        let Some(grants) = &self.grants else { return event(&mut self.level, wakers) };
        let mut account = grants.account();
        let result = self.level.by_grant(now, Granted::default(), &mut account, |level| event(level, wakers));
        wakers.handover.add(account.handover);
        result
    }

    /// Does what is due: frees the seats of requests that have lingered, and rejects requests that have waited as long as they
    /// may. Those are to be dropped without the lock.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        unix_second: impl Fn() -> i64,
        wakers: &mut Wakers,
    ) -> Vec<Ended<Waiter>> {
        let mut ended = self.event(now, wakers, |level, wakers| {
            let mut timed_out = TimedOut { wakers, ended: Vec::new() };
            level.handle_timeout(now, &mut timed_out);
            timed_out.ended
        });
        let mut released = 0;
        for ended in &mut ended {
            if ended.phase == Phase::Waiting {
                self.metrics.gave_up(now, Ending::from(&*ended), Rejection::TimeOut);
                self.retry.record_drop(&unix_second);
                wakers.extend(ended.payload.waker.take());
            } else {
                self.metrics.released(Ending::from(&*ended));
                released += 1;
            }
        }
        self.settle(now, released, wakers);
        self.start_own_grants(wakers);
        ended
    }

    /// Whether the level takes seats from a request that starts (FQ-23).
    #[inline]
    fn narrows(&self, work: WorkEstimate) -> bool {
        i64::from(work.final_seats) > self.queue_set().concurrency_limit()
    }

    /// What a request that was started at once went through.
    #[inline]
    fn passed(&self, queue: Option<usize>) -> Passed {
        match queue {
            Some(queue) => Passed::Queue { length: self.queue_set().queue_length(queue) + 1 },
            None if self.queue_set().mode() == Mode::Exempt => Passed::Exempt,
            None => Passed::NoQueue,
        }
    }

    #[inline]
    fn ending(&self, id: RequestId, phase: Phase) -> Option<Ending> {
        self.queue_set().request(id).map(|request| Ending::of(&request)).filter(|ending| ending.phase() == phase)
    }

    /// Tells whoever advises rejected clients that so many requests have given their seats back.
    #[inline]
    fn note_drain(&mut self, now: Instant, released: u64) {
        self.retry.note(now, self.level.queue_set(), self.grants.as_ref(), released);
    }

    /// Counts what an event brought about; `released` is how many requests have given their seats back.
    #[inline]
    fn settle(&mut self, now: Instant, released: u64, wakers: &mut Wakers) {
        self.metrics.settle(now, self.level.queue_set(), &mut wakers.notes);
        self.note_drain(now, released);
    }
}

// === impl TimedOut ===

impl Effects<Waiter> for TimedOut<'_> {
    fn started(&mut self, id: RequestId, waiter: &mut Waiter) {
        self.wakers.started(id, waiter);
    }

    fn blocked(&mut self, waiter: &Waiter) {
        self.wakers.blocked(waiter);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        self.wakers.epoch_advanced(clean);
    }

    fn timed_out(&mut self, ended: Ended<Waiter>) {
        self.ended.push(ended);
    }
}
