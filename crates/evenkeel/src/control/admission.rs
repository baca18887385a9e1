//! `Admission`: a request in its level. The request ends when its `Admission` is dropped, whatever it was doing.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::thread::LocalKey;
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::cost::{Adjustment, CostAccount};
use evenkeel_engine::queue_set::{Phase, Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

use crate::control::accounts::{RequestAccount, Settled};
use crate::control::core::{Belongings, LevelCore};
use crate::control::events::RunEnd;
use crate::control::long_running::Counting;
use crate::control::rejected::Rejected;
use crate::control::reused_box::{Reusable, ReusedBox, SpareBoxes};
use crate::control::revocation::RevocationTicket;
use crate::control::seat_times::{RequestCost, SeatTimes};
use crate::control::snapshot::Destination;
use crate::control::trace;
use crate::control::wakers::Wakers;

/// A request that has arrived, with references to everything that concerns it.
///
/// Dropping it ends the request: one that waits leaves its queue, one that runs finishes. So no seat is ever lost,
/// wherever a future is dropped and whatever panics. It is kept in a [`ReusedBox`](crate::control::reused_box::ReusedBox): futures and bodies that
/// hold it are moved several times.
#[derive(Debug)]
pub(crate) struct Admission {
    pub(crate) destination: Arc<Destination>,
    pub(crate) id: RequestId,
    /// The seats that it takes.
    pub(crate) seats: AtomicU32,
    /// The queue that it was put into, if there are queues.
    pub(crate) queue: Option<u32>,
    /// Its place among those that wait when it arrived, from 1; 0 if it has not waited.
    pub(crate) position: u32,
    /// Whether it counts among the long-running requests.
    pub(crate) counting: Counting,
    /// Where the times of the request are noted, if its caller wants to know them.
    pub(crate) times: Option<Arc<SeatTimes>>,
    /// Whether the caller gives the request up because its time is over, and not because its client has left.
    pub(crate) has_expired: bool,
    /// How it has ended so far: an [`RunEnd`].
    pub(crate) end: AtomicU8,
    /// The account of its cost, if costs count.
    pub(crate) account: Option<ReusedBox<RequestAccount>>,
    /// The ticket by which it may be told to end, if its level is revocable.
    pub(crate) ticket: Option<Arc<RevocationTicket>>,
}

/// A request that has left its queue.
struct GivenUp {
    reason: Rejection,
    /// To be dropped without the lock.
    _belongings: Belongings,
}

thread_local! {
    static SPARE: SpareBoxes<Admission> = const { RefCell::new(Vec::new()) };
}

// === impl Admission ===

impl Reusable for Admission {
    #[inline]
    fn spare() -> &'static LocalKey<SpareBoxes<Self>> {
        &SPARE
    }
}

impl Admission {
    /// The phase of the request. If it waits, the waker is called when it is started or rejected. `None` if it has been rejected.
    pub(crate) fn phase_or_wake(&self, waker: &std::task::Waker) -> Option<Phase> {
        // Cloning and dropping a waker may run anything, code that takes this very lock included.
        let mut waker = Some(waker.clone());
        let mut core = self.destination.level.lock();
        let phase = core.queue_set().phase(self.id);
        if phase == Some(Phase::Waiting) {
            std::mem::swap(&mut core.belongings_mut(self.id).waker, &mut waker);
        }
        drop(core);
        drop(waker);
        phase
    }

    /// Notes how the request ends; of several, the worst counts.
    pub(crate) fn note_end(&self, end: RunEnd) {
        self.end.fetch_max(end.number(), Ordering::Relaxed);
    }

    /// How long the request waited, if it has started.
    pub(crate) fn waited(&self) -> Duration {
        let start = self.destination.level.lock().queue_set().start(self.id);
        start.map_or(Duration::ZERO, |(arrived, started)| Duration::from_nanos((started - arrived).unsigned_abs()))
    }

    /// The flow of the request is charged that much more seat-time, or less; nothing happens unless it runs.
    pub(crate) fn charge(&self, seat_time: Nanos) {
        self.change(|core, now, wakers| core.charge(now, self.id, seat_time, wakers));
    }

    /// The request holds so many seats from now on, if it runs and takes any.
    pub(crate) fn set_seats(&self, seats: u32) {
        let held = self.change(|core, now, wakers| {
            let held = core.set_seats(now, self.id, seats, wakers)?;
            if let Some(account) = &self.account
                && let Some((_, started)) = core.queue_set().start(self.id)
            {
                account.state().set_seats(started, now, held);
            }
            Some(held)
        });
        if let Some(held) = held {
            self.seats.store(held, Ordering::Relaxed);
        }
    }

    /// Some cost has arisen: charges the flow of the request and changes its seats, if that is due (CO-4). Nothing happens if costs do
    /// not count.
    #[inline]
    pub(crate) fn note_cost(&self, step: impl FnOnce(&mut CostAccount) -> Option<Adjustment>) {
        if let Some(account) = &self.account
            && let Some(adjustment) = account.note(step)
        {
            self.adjust(account, adjustment);
        }
    }

    #[cold]
    fn adjust(&self, account: &RequestAccount, adjustment: Adjustment) {
        let held = self.change(|core, now, wakers| {
            let (_, started) = core.queue_set().start(self.id)?;
            if adjustment.charge != 0 {
                core.charge(now, self.id, adjustment.charge, wakers);
            }
            let held = core.set_seats(now, self.id, adjustment.seats?, wakers)?;
            account.state().set_seats(started, now, held);
            Some(held)
        });
        if let Some(held) = held {
            self.seats.store(held, Ordering::Relaxed);
        }
    }

    /// The request does not run: it leaves its queue, and counts as rejected, although no client is left to be told (FQ-28, HF-12). `None`
    /// if it is not in a queue either.
    #[cold]
    fn give_up(&self, core: &mut LevelCore, now: Instant, wakers: &mut Wakers) -> Option<GivenUp> {
        let reason = self.reason_to_leave();
        let belongings = core.cancel(now, self.id, reason, wakers);
        if belongings.is_none() {
            // The task of the request will not ask for the reason any more.
            core.take_reason(self.id);
        }
        belongings.map(|belongings| GivenUp { reason, _belongings: belongings })
    }

    /// The request has ended, and no lock is held: its cost is learnt and noted. It was not settled if it never ran.
    #[cold]
    fn close(&self, mut account: ReusedBox<RequestAccount>, settled: Option<&Settled>, has_failed: bool, now: Instant) {
        let Some(accounts) = &self.destination.accounts else { return };
        let Some(settled) = settled else { return account.abandon(accounts, now) };
        account.close(accounts, settled, has_failed, now);
        if let (Some(times), Some(unit)) = (&self.times, settled.unit) {
            times.note_cost(RequestCost { expected: settled.expected, actual: settled.settlement.cost }, unit);
        }
    }

    /// Whether the request was started, but must not run: the seats of this instance have ended since then (FL-8).
    #[cfg(feature = "fleet")]
    pub(crate) fn is_forbidden(&self) -> bool {
        let upkeep = &self.destination.upkeep;
        if !upkeep.gate.is_limited() {
            return false;
        }
        let start = self.destination.level.lock().queue_set().start(self.id);
        start.is_some_and(|(_, started)| upkeep.gate.forbids(started, &upkeep.clock))
    }

    /// The request has waited, and runs now: its seats follow what was learnt meanwhile.
    pub(crate) fn expect_anew(&self) {
        if let Some(account) = &self.account
            && let Some(accounts) = &self.destination.accounts
            && let Some(seats) = account.expect_anew(accounts)
        {
            self.set_seats(seats);
        }
    }

    /// Changes the request, and wakes the tasks that the change concerns.
    fn change<R>(&self, change: impl FnOnce(&mut LevelCore, Instant, &mut Wakers) -> R) -> R {
        let (upkeep, level) = (&self.destination.upkeep, &self.destination.level);
        let mut wakers = Wakers::default();
        let now = upkeep.clock.now();
        upkeep.before_event(now);
        let mut core = level.lock_for_event();
        let now = core.at(now);
        let result = change(&mut core, now, &mut wakers);
        let is_batch = core.events.is_batch();
        drop(core);
        wakers.wake();
        level.hand_on_batch(is_batch);
        result
    }

    /// The phase of the request, after everything that is due in its level has been done.
    pub(crate) fn phase_after_timeouts(&self) -> Option<Phase> {
        let mut wakers = Wakers::default();
        self.destination.upkeep.handle_timeout(&self.destination.level, &mut wakers);
        let phase = self.destination.level.lock().queue_set().phase(self.id);
        wakers.wake();
        phase
    }

    /// How the request is counted if it is dropped now; `None` if it does not wait.
    pub(crate) fn reason_if_dropped(&self) -> Option<Rejection> {
        let phase = self.destination.level.lock().queue_set().phase(self.id);
        (phase == Some(Phase::Waiting)).then(|| self.reason_to_leave())
    }

    /// Why the request leaves its queue when it is dropped. Kubernetes does not tell who gives a request up (OB-2).
    fn reason_to_leave(&self) -> Rejection {
        match self.destination.preset() {
            Preset::Plain | Preset::Llm if !self.has_expired => Rejection::Cancelled,
            Preset::Plain | Preset::Llm | Preset::Kubernetes => Rejection::TimeOut,
        }
    }

    /// The rejection of a request that is gone: it has waited for its whole limit, or has given way to another.
    pub(crate) fn rejected(&self) -> Rejected {
        let reason = self.destination.level.lock().take_reason(self.id);
        let (advice, _) = self.destination.level.advise();
        trace::gave_up(self.destination.schema(), reason);
        Rejected::new(reason, advice, self.seats.load(Ordering::Relaxed), self.queue, &self.destination)
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.counting.end(&self.destination.long_running);
        if self.ticket.is_some() {
            self.destination.upkeep.revoker.remove(self.destination.level.id, self.id);
        }
        let mut wakers = Wakers::default();
        let end = RunEnd::of_number(*self.end.get_mut());
        let destination = &*self.destination;
        let now = destination.upkeep.clock.now();
        destination.upkeep.before_event(now);
        let mut core = destination.level.lock_for_event();
        let now = core.at(now);
        let start = self.times.as_ref().and_then(|_| core.queue_set().start(self.id));
        let settled = self.account.as_mut().and_then(|account| settle(account, destination, &core, self.id, now));
        let finish = core.finish(now, self.id, end, settled.as_ref(), &mut wakers);
        let given_up = if finish.is_none() { self.give_up(&mut core, now, &mut wakers) } else { None };
        let is_idle = core.queue_set().is_idle();
        let lingers = finish.as_ref().is_some_and(|finished| finished.lingers);
        let change = if lingers { core.take_earlier_timeout() } else { None };
        let is_batch = core.events.is_batch();
        drop(core);
        if let Some(account) = self.account.take() {
            self.close(account, settled.as_ref(), end != RunEnd::Done, now);
        }
        if let Some(times) = &self.times {
            times.note_end(start.map(|(_, started)| started), now);
        }
        let reason = given_up.as_ref().map(|given_up| given_up.reason);
        // Dropping these drops a waker, which may run any code: see `phase_or_wake`.
        drop((finish, given_up));
        // Timers are scheduled before tasks are woken: a waker that panics must not cost seats.
        if let Some(change) = change {
            self.destination.upkeep.schedule(&self.destination.level, change, &mut wakers);
        }
        self.destination.level.note_end(is_idle, &self.destination.upkeep);
        wakers.wake();
        self.destination.level.hand_on_batch(is_batch);
        if let Some(reason) = reason {
            trace::gave_up(self.destination.schema(), reason);
        }
    }
}

/// A request is about to end: what is left of its cost (CO-5). `None` if it never ran.
#[cold]
fn settle(
    account: &mut RequestAccount,
    destination: &Destination,
    core: &LevelCore,
    id: RequestId,
    now: Instant,
) -> Option<Settled> {
    let (_, started) = core.queue_set().start(id)?;
    Some(account.settle(destination.accounts.as_deref()?, started, now))
}
