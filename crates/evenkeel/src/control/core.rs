//! `LevelCore`: the seats and queues of a level, its waiting requests, and the events that the listeners have not got yet. It is
//! all that the lock of a level guards.

use std::collections::BTreeSet;
use std::task::Waker;

use evenkeel_engine::drain::is_saturated;
use evenkeel_engine::level;
use evenkeel_engine::queue_set::{Mode, Phase, QueueSet, QueueSetConfig, Rejection, RequestId};
use evenkeel_engine::time::Instant;

use crate::control::counts::{Access, Mark, Readings};
use crate::control::events::{EventBuffer, LevelNumbers};
use crate::control::ledger::LevelGrants;
use crate::control::request::Details;
use crate::control::reused_box::ReusedBox;
use crate::control::wakers::Wakers;

/// The part of a level that its lock guards. The methods for events are in `core_events.rs`.
#[derive(Debug)]
pub(crate) struct LevelCore {
    pub(crate) level: EngineLevel,
    /// The belongings of requests, by their slots. The queue set moves the eight bytes of a mark about with each request;
    /// belongings stay in place.
    pub(crate) belongings: Vec<Belongings>,
    /// The level's part in the ledger, while levels borrow at once.
    pub(crate) grants: Option<LevelGrants>,
    /// The events that have not been handed on to the listeners yet.
    pub(crate) events: EventBuffer,
    /// The time of the latest event.
    pub(crate) latest: Instant,
    /// How many requests of the level write.
    pub(crate) mutating: MutatingCounts,
    /// Whether the level is gone: requests that still arrive have to be classified anew.
    pub(crate) is_removed: bool,
    /// The last readings of the queue set, after its queues were given up.
    last_readings: Option<Readings>,
    /// When the upkeep looks at the timers of the level next, if it is going to.
    scheduled: Option<Instant>,
    /// Requests that gave way to others while they waited, until their tasks have been told (PF-7).
    pub(crate) displaced: BTreeSet<RequestId>,
}

/// The level as the engine has it.
pub(crate) type EngineLevel = level::Level<Mark>;

/// The queue set of a level.
pub(crate) type LevelQueueSet = QueueSet<Mark>;

/// How many requests of a level write; the others read (HF-19).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MutatingCounts {
    pub(crate) waiting: i64,
    pub(crate) executing: i64,
}

/// The next time to look at the timers of a level, and the time that was planned before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reschedule {
    pub(crate) before: Option<Instant>,
    pub(crate) at: Option<Instant>,
}

/// The part of a request beside its [`Mark`]. Dropping a waker may run any code, so no lock may be held then.
#[derive(Debug, Default)]
pub(crate) struct Belongings {
    /// The waker of the request's task while the request waits; `None` if it has started at once.
    pub(crate) waker: Option<Waker>,
    /// What dumps show of it.
    pub(crate) details: Option<ReusedBox<Details>>,
}

/// The configuration of a queue set that rejects every request, and takes next to no memory.
pub(crate) const NOTHING: QueueSetConfig = QueueSetConfig { mode: Mode::Reject, concurrency_limit: 0 };

// === impl LevelCore ===

impl LevelCore {
    pub(crate) fn new(config: QueueSetConfig, now: Instant) -> Self {
        Self {
            level: EngineLevel::new(config, now),
            belongings: Vec::new(),
            grants: None,
            events: EventBuffer::default(),
            latest: now,
            mutating: MutatingCounts::default(),
            is_removed: false,
            last_readings: None,
            scheduled: None,
            displaced: BTreeSet::new(),
        }
    }

    /// The requests and queues of the level.
    #[inline]
    pub(crate) fn queue_set(&self) -> &LevelQueueSet {
        self.level.queue_set()
    }

    /// The seats that the level may use now. Where levels borrow at once, those that it uses and could use in addition.
    pub(crate) fn current_limit(&self) -> i64 {
        self.grants.as_ref().map_or_else(|| self.queue_set().concurrency_limit(), LevelGrants::usable)
    }

    /// The numbers that go with an event.
    #[inline]
    pub(crate) fn numbers(&self) -> LevelNumbers {
        numbers(self.queue_set(), self.grants.as_ref())
    }

    /// The seats in use in a level that has a limit, those that are on their way to it included.
    #[cfg(feature = "fleet")]
    pub(crate) fn limited_seats(&self) -> i64 {
        if matches!(self.queue_set().mode(), Mode::Exempt) {
            return 0;
        }
        self.grants.as_ref().map_or_else(|| self.queue_set().seats_in_use(), LevelGrants::seats_in_use)
    }

    /// How many requests there are of each kind, in the order of [`CROWD_KINDS`](crate::control::counts::CROWD_KINDS).
    pub(crate) fn crowd(&self) -> [i64; 4] {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (waiting, executing) = (number(self.queue_set().waiting()), number(self.queue_set().executing()));
        let MutatingCounts { waiting: waiting_writes, executing: writes } = self.mutating;
        [waiting - waiting_writes, waiting_writes, executing - writes, writes]
    }

    /// The new plan if a timer was added that is due before the planned look at the timers.
    pub(crate) fn take_earlier_timeout(&mut self) -> Option<Reschedule> {
        let next = self.level.next_timeout()?;
        let is_earlier = self.scheduled.is_none_or(|scheduled| next < scheduled);
        is_earlier.then(|| self.reschedule())
    }

    /// Plans the next look at the timers of the level, after they were looked at or changed.
    pub(crate) fn reschedule(&mut self) -> Reschedule {
        let at = self.level.next_timeout();
        Reschedule { before: std::mem::replace(&mut self.scheduled, at), at }
    }

    /// Cancels the planned look at the timers of the level.
    pub(crate) fn unschedule(&mut self) {
        self.scheduled = None;
    }

    /// What metrics show of the progress of the queue set.
    pub(crate) fn readings(&self) -> Readings {
        self.last_readings.unwrap_or_else(|| Readings::of(self.level.queue_set()))
    }

    /// Gives up the queues of a level that is gone, once nothing lingers in it any more. Its numbers stay for ever, and
    /// millions of queues need not. To be dropped without the lock.
    pub(crate) fn take_queues(&mut self) -> Option<EngineLevel> {
        let set = self.level.queue_set();
        let is_used = !self.is_removed || !set.is_idle() || set.seats_in_use() != 0 || set.requests().next().is_some();
        if is_used || self.last_readings.is_some() {
            return None;
        }
        self.last_readings = Some(Readings::of(set));
        self.belongings = Vec::new();
        Some(std::mem::replace(&mut self.level, EngineLevel::new(NOTHING, self.latest)))
    }

    /// The time of an event whose thread read the clock before it took the lock. Threads overtake each other in between, and the
    /// engine's time must not go backwards: an event that was overtaken gets a time right after the latest one, so that the times
    /// of events tell their order.
    #[inline]
    pub(crate) fn at(&mut self, now: Instant) -> Instant {
        self.latest = if now < self.latest { self.latest + 1 } else { now };
        self.latest
    }

    /// Takes the wakers of all waiting requests. Their tasks leave new ones when they find that they have to wait on.
    pub(crate) fn take_wakers(&mut self, wakers: &mut Wakers) {
        for id in self.requests_in(Phase::Waiting) {
            wakers.extend(self.take_waker(id));
        }
    }

    /// The belongings of a request, to be changed.
    pub(crate) fn belongings_mut(&mut self, id: RequestId) -> &mut Belongings {
        if self.belongings.len() <= id.slot() {
            self.belongings.resize_with(id.slot() + 1, Belongings::default);
        }
        &mut self.belongings[id.slot()]
    }

    /// Takes the belongings of a request that is gone. To be dropped without the lock.
    #[inline]
    pub(crate) fn take_belongings(&mut self, id: RequestId) -> Belongings {
        self.belongings.get_mut(id.slot()).map(std::mem::take).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn take_waker(&mut self, id: RequestId) -> Option<Waker> {
        self.belongings.get_mut(id.slot())?.waker.take()
    }

    /// The requests that are in a phase.
    pub(crate) fn requests_in(&self, phase: Phase) -> Vec<RequestId> {
        let requests = self.queue_set().requests().filter(|request| request.phase == phase);
        requests.map(|request| request.id).collect()
    }

    /// Why a request that is gone was rejected while it waited. To be asked once.
    pub(crate) fn take_reason(&mut self, id: RequestId) -> Rejection {
        if self.displaced.remove(&id) { Rejection::QueueFull } else { Rejection::TimeOut }
    }
}

/// The numbers of a level that go with an event.
#[inline]
pub(crate) fn numbers(set: &LevelQueueSet, grants: Option<&LevelGrants>) -> LevelNumbers {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let (waiting, has_queues) = (set.waiting(), matches!(set.mode(), Mode::Queue(_)));
    LevelNumbers {
        seats_waiting: set.seats_waiting(),
        seats_in_use: u32::try_from(set.seats_in_use()).unwrap_or(u32::MAX),
        executing: number(set.executing()),
        waiting: number(waiting),
        is_saturated: waiting > 0 || (!has_queues && rejects(set, grants)),
        has_queues,
        is_last: false,
    }
}

/// Whether a request would be rejected for want of a seat, in a level in which nothing may wait.
fn rejects(set: &LevelQueueSet, grants: Option<&LevelGrants>) -> bool {
    // Where seats are granted one by one, the limit of the queue set is what it uses.
    is_saturated(set, || grants.map_or_else(|| set.concurrency_limit(), LevelGrants::usable))
}

// === impl MutatingCounts ===

impl MutatingCounts {
    /// Adds to the numbers of requests that wait and execute; the arguments are negative if there are fewer.
    #[inline]
    pub(crate) fn change(&mut self, access: Access, waiting: i64, executing: i64) {
        if access == Access::Mutating {
            self.waiting += waiting;
            self.executing += executing;
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::WorkEstimate;
    use evenkeel_engine::level::NewRequest;
    use evenkeel_engine::queue_set::{Arrival, NoEffects};

    use super::*;

    #[test]
    fn time_does_not_go_backwards_when_threads_overtake_each_other() {
        let config = QueueSetConfig { mode: Mode::queue(1, 1, 9).unwrap(), concurrency_limit: 1 };
        let mut core = LevelCore::new(config, Instant::from_nanos(0));
        let later = core.at(Instant::from_nanos(1_000));
        let new = NewRequest::new(0, WorkEstimate::ONE_SEAT);
        let arrival = core.level.arrive(later, new, Mark::default(), &mut NoEffects);
        let Arrival::Started { id, .. } = arrival else { panic!("it waits") };
        let overtaken = core.at(Instant::from_nanos(500));
        assert_eq!(overtaken, Instant::from_nanos(1_001), "it happens after the other one");
        core.level.finish(overtaken, id, &mut NoEffects);
        // A meter that ran below zero would have been wound back from the largest value.
        let progress = core.queue_set().virtual_time().units();
        assert!((0..1_000_000).contains(&progress), "{progress}");
        assert_eq!(
            core.at(Instant::from_nanos(1_001)),
            overtaken,
            "what happens at the same time stays at the same time"
        );
    }
}
