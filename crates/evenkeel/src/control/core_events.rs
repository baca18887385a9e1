//! The events of a level's core: the queue set decides, and the result is appended to the event buffer.

use std::sync::Arc;

use evenkeel_engine::borrowing::{Granted, Stake};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::{Arrival, Effects, Ended, Finish, Mode, Phase, QueueSetConfig, Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Flow, WorkEstimate};

use crate::control::accounts::Settled;
use crate::control::core::{Belongings, EngineLevel, LevelCore};
use crate::control::counts::Mark;
use crate::control::events::{EventKind, EventSubject, NO_QUEUE, RunEnd};
use crate::control::ledger::{Grant, SharedLedger};
use crate::control::level::Level;
use crate::control::request::Details;
use crate::control::reused_box::ReusedBox;
use crate::control::wakers::Wakers;

/// A request on its way into a level.
#[derive(Debug)]
pub(crate) struct Arriving<'a> {
    pub(crate) flow: Flow<'a>,
    pub(crate) work: WorkEstimate,
    /// Until when the request waits at most.
    pub(crate) wait_until: Instant,
    /// How the request is counted.
    pub(crate) mark: Mark,
    /// What dumps show of the request.
    pub(crate) details: Option<ReusedBox<Details>>,
    /// How many watches the request concerns, if that was asked (WE-18).
    pub(crate) watches: Option<u64>,
    /// Whether the request holds its seats for long (LB-5).
    pub(crate) is_long_running: bool,
}

/// Collects requests whose time is over, and the other effects of an event.
struct TimedOut<'a> {
    wakers: &'a mut Wakers,
    ended: Vec<Ended<Mark>>,
}

/// A request that has finished. It is to be dropped without the lock.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Whether the request keeps its seats for a while.
    pub(crate) lingers: bool,
    _belongings: Belongings,
}

/// The figures of a request that have to be read before it ends.
#[derive(Debug, Clone, Copy)]
struct Ending {
    mark: Mark,
    subject: EventSubject,
    arrived: Instant,
    started: Option<Instant>,
}

// === impl LevelCore ===

impl LevelCore {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that a request is not copied on its way to the engine")]
    pub(crate) fn arrive(&mut self, now: Instant, arriving: Arriving<'_>, wakers: &mut Wakers) -> Arrival<Mark> {
        let Arriving { flow, work, wait_until, mark, details, watches, is_long_running } = arriving;
        let work = self.queue_set().fitted(work);
        let mut request = NewRequest::new(flow, work);
        request.wait_until = Some(wait_until);
        request.is_long_running = is_long_running;
        if work.is_seatless() {
            request = request.seatless();
        }
        let arrival = match &self.grants {
            None => self.level.arrive(now, request, mark, wakers),
            Some(grants) => {
                let mut account = grants.account();
                let arrival = self.level.arrive_by_grant(now, request, mark, wakers, &mut account);
                wakers.handover.add(now, account.handover);
                arrival
            }
        };
        let flow = flow.hash();
        let is_passed = match &arrival {
            Arrival::Started { id, .. } => {
                let is_all = wakers.notes.tell_only_of(*id) && wakers.displaced.is_empty() && watches.is_none();
                is_all && !self.narrows(work)
            }
            Arrival::Waiting { .. } | Arrival::Rejected { .. } => false,
        };
        match &arrival {
            // Nearly all requests take this branch.
            Arrival::Started { id, queue } if is_passed => {
                wakers.notes.first_started = None;
                self.mutating.change(mark.access, 0, 1);
                let subject = mark.subject(*id, work);
                let (queue_length, is_exempt) = self.passed_through(*queue);
                let kind = EventKind::Passed { flow, queue_length, is_exempt };
                self.events.push_only(now, subject, kind, self.numbers());
            }
            _ => self.note_arrival(now, &arrival, mark, flow, work, watches, wakers),
        }
        if let Some(details) = details {
            self.keep_details(&arrival, details, wakers);
        }
        self.start_own_grants(wakers);
        arrival
    }

    #[inline]
    fn keep_details(&mut self, arrival: &Arrival<Mark>, details: ReusedBox<Details>, wakers: &mut Wakers) {
        match arrival {
            Arrival::Started { id, .. } | Arrival::Waiting { id, .. } => {
                self.belongings_mut(*id).details = Some(details);
            }
            Arrival::Rejected { .. } => wakers.dropped.push(Belongings { waker: None, details: Some(details) }),
        }
    }

    /// Appends the event of an arrival that did not just pass through.
    #[cold]
    #[expect(clippy::too_many_arguments, reason = "what arrived, and what came of it")]
    fn note_arrival(
        &mut self,
        now: Instant,
        arrival: &Arrival<Mark>,
        mark: Mark,
        flow: u64,
        work: WorkEstimate,
        watches: Option<u64>,
        wakers: &mut Wakers,
    ) {
        self.note_displaced(now, wakers);
        if let Some(count) = watches {
            self.events.push(now, mark.subject(RequestId::NONE, work), EventKind::Watches { count });
        }
        match *arrival {
            Arrival::Rejected { reason, .. } => {
                self.events.push(now, mark.subject(RequestId::NONE, work), EventKind::Refused { flow, reason });
            }
            Arrival::Started { id, queue } => self.note_arrived(now, mark, id, work, flow, queue, false, wakers),
            Arrival::Waiting { id, queue } => self.note_arrived(now, mark, id, work, flow, Some(queue), true, wakers),
        }
        self.settle(now, wakers);
    }

    #[expect(clippy::too_many_arguments, reason = "what arrived, and what came of it")]
    fn note_arrived(
        &mut self,
        now: Instant,
        mark: Mark,
        id: RequestId,
        work: WorkEstimate,
        flow: u64,
        queue: Option<usize>,
        waits: bool,
        wakers: &Wakers,
    ) {
        let queue_length = queue.map_or(NO_QUEUE, |queue| {
            // Requests that this arrival started were still in the queue when the request joined it.
            let set = self.queue_set();
            let is_of_queue = |id: &RequestId| set.request(*id).is_some_and(|request| request.queue == Some(queue));
            let started = wakers.notes.started().filter(is_of_queue).count();
            length(set.queue_length(queue) + started)
        });
        self.mutating.change(mark.access, i64::from(queue.is_some()), 0);
        self.events.push(now, mark.subject(id, work), EventKind::Arrived { flow, queue_length, waits });
    }

    /// A request is rejected before the queue set sees it.
    pub(crate) fn refuse(&mut self, now: Instant, mark: Mark, flow: Flow<'_>, work: WorkEstimate, reason: Rejection) {
        let kind = EventKind::Refused { flow: flow.hash(), reason };
        self.events.push_only(now, mark.subject(RequestId::NONE, work), kind, self.numbers());
    }

    /// A request that runs finishes, and its flow is charged what is left of its cost (CO-5). `None` if it does not run.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "as for `arrive`")]
    pub(crate) fn finish(
        &mut self,
        now: Instant,
        id: RequestId,
        end: RunEnd,
        settled: Option<&Settled>,
        wakers: &mut Wakers,
    ) -> Option<Finished> {
        let ending = self.ending(id, Phase::Executing)?;
        let charge = settled.map_or(0, |settled| settled.settlement.charge);
        let lingers = |finish: Finish<Mark>| matches!(finish, Finish::Lingering { .. });
        let lingers = self.event(now, wakers, |level, wakers| {
            if charge != 0 {
                level.charge(now, id, charge, wakers);
            }
            level.finish(now, id, wakers).map(lingers)
        })?;
        self.mutating.change(ending.mark.access, 0, -1);
        let kind = EventKind::Finished {
            ran: ending.started.map_or(0, |started| now - started),
            lingers,
            is_watch: ending.mark.is_watch,
            end,
        };
        let heard = settled.filter(|_| self.events.hear_costs);
        if let Some(settled) = heard {
            self.note_settled(now, ending.subject, settled);
        }
        if wakers.notes.tell_nothing() && heard.is_none() {
            self.events.push_only(now, ending.subject, kind, self.numbers());
        } else {
            self.events.push(now, ending.subject, kind);
            self.settle(now, wakers);
        }
        self.start_own_grants(wakers);
        let belongings = if lingers { Belongings::default() } else { self.take_belongings(id) };
        Some(Finished { lingers, _belongings: belongings })
    }

    /// Appends the events of a cost that has been settled, before that of the end.
    #[cold]
    fn note_settled(&mut self, now: Instant, subject: EventSubject, settled: &Settled) {
        let Settled { settlement, expected, unit } = settled;
        if settlement.charge != 0 {
            self.events.push(now, subject, EventKind::Charged { seat_time: settlement.charge });
        }
        if let Some(unit) = unit {
            self.events.push(now, subject, EventKind::costed(*unit, settlement.cost, *expected));
        }
    }

    /// A waiting request gives up, and is counted with this reason.
    pub(crate) fn cancel(
        &mut self,
        now: Instant,
        id: RequestId,
        reason: Rejection,
        wakers: &mut Wakers,
    ) -> Option<Belongings> {
        let ending = self.ending(id, Phase::Waiting)?;
        self.event(now, wakers, |level, wakers| level.cancel(now, id, wakers))?;
        let belongings = self.take_belongings(id);
        self.note_gave_up(now, ending, reason, false);
        self.settle(now, wakers);
        self.start_own_grants(wakers);
        Some(belongings)
    }

    /// The flow of an executing request is charged more or less seat-time. Tells whether the request is executing.
    pub(crate) fn charge(&mut self, now: Instant, id: RequestId, seat_time: Nanos, wakers: &mut Wakers) -> bool {
        let ending = self.ending(id, Phase::Executing);
        let is_charged = self.event(now, wakers, |level, wakers| level.charge(now, id, seat_time, wakers));
        if let Some(ending) = ending.filter(|_| self.events.hear_costs) {
            self.events.push(now, ending.subject, EventKind::Charged { seat_time });
        }
        self.settle(now, wakers);
        self.start_own_grants(wakers);
        is_charged
    }

    /// An executing request holds so many seats from now on. Tells how many it holds; `None` if it is not executing or takes no
    /// seat.
    pub(crate) fn set_seats(&mut self, now: Instant, id: RequestId, seats: u32, wakers: &mut Wakers) -> Option<u32> {
        let before = self.event(now, wakers, |level, wakers| level.set_seats(now, id, seats, wakers))?;
        let request = self.queue_set().request(id)?;
        let (after, subject) = (request.work.max_seats(), request.payload.subject(id, request.work));
        self.events.push(now, subject, EventKind::Resized { before });
        self.settle(now, wakers);
        self.start_own_grants(wakers);
        Some(after)
    }

    pub(crate) fn release(&mut self, now: Instant, id: RequestId, wakers: &mut Wakers) -> Option<Belongings> {
        let ending = self.ending(id, Phase::Lingering)?;
        self.event(now, wakers, |level, wakers| level.release(now, id, wakers))?;
        let belongings = self.take_belongings(id);
        self.events.push(now, ending.subject, EventKind::Released);
        self.settle(now, wakers);
        self.start_own_grants(wakers);
        Some(belongings)
    }

    pub(crate) fn configure(&mut self, now: Instant, config: QueueSetConfig, wakers: &mut Wakers) {
        self.event(now, wakers, |level, wakers| level.configure(now, config, wakers));
        self.settle_change(now, wakers);
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
            wakers.handover.add(now, account.handover);
        }
        self.settle_change(now, wakers);
    }

    /// The level no longer takes part in a ledger: a limit says what starts.
    pub(crate) fn leave_ledger(&mut self, wakers: &mut Wakers) {
        if self.grants.take().is_some() {
            let now = self.latest;
            self.level.end_grants(now, wakers);
            self.settle_change(now, wakers);
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
        let Some(grants) = self.grants.as_ref().filter(|grants| grants.is_for(grant)) else {
            wakers.handover.skip(self.grants.as_ref());
            return;
        };
        let now = self.latest.max(wakers.handover.at);
        self.latest = now;
        grants.receive(grant);
        let mut account = grants.account();
        self.level.start_granted(now, grant.granted, wakers, &mut account);
        wakers.handover.add(now, account.handover);
        self.settle(now, wakers);
    }

    /// Carries out an event other than an arrival.
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
        wakers.handover.add(now, account.handover);
        result
    }

    /// Does what is due: frees the seats of requests that have lingered, and rejects requests that have waited as long as they
    /// may. Those are to be dropped without the lock.
    pub(crate) fn handle_timeout(&mut self, now: Instant, wakers: &mut Wakers) -> Vec<Belongings> {
        let ended = self.event(now, wakers, |level, wakers| {
            let mut timed_out = TimedOut { wakers, ended: Vec::new() };
            level.handle_timeout(now, &mut timed_out);
            timed_out.ended
        });
        let mut dropped = Vec::with_capacity(ended.len());
        for ended in &ended {
            let ending = Ending::from(ended);
            let mut belongings = self.take_belongings(ended.id);
            if ended.phase == Phase::Waiting {
                self.note_gave_up(now, ending, Rejection::TimeOut, false);
                wakers.extend(belongings.waker.take());
            } else {
                self.events.push(now, ending.subject, EventKind::Released);
            }
            dropped.push(belongings);
        }
        self.settle(now, wakers);
        self.start_own_grants(wakers);
        dropped
    }

    /// Waiting requests have given way to others, and are rejected (PF-7).
    fn note_displaced(&mut self, now: Instant, wakers: &mut Wakers) {
        for ended in wakers.displaced.take() {
            self.displaced.insert(ended.id);
            self.note_gave_up(now, Ending::from(&ended), Rejection::QueueFull, true);
            let mut belongings = self.take_belongings(ended.id);
            wakers.extend(belongings.waker.take());
            wakers.dropped.push(belongings);
        }
    }

    fn note_gave_up(&mut self, now: Instant, ending: Ending, reason: Rejection, is_displaced: bool) {
        self.mutating.change(ending.mark.access, -1, 0);
        let kind = EventKind::GaveUp { waited: now - ending.arrived, reason, is_displaced };
        self.events.push(now, ending.subject, kind);
    }

    fn note_started(&mut self, now: Instant, id: RequestId, wakers: &mut Wakers) {
        wakers.extend(self.take_waker(id));
        let Some(request) = self.level.queue_set().request(id) else { return };
        let (mark, subject) = (*request.payload, request.payload.subject(id, request.work));
        let was_queued = request.queue.is_some();
        let is_exempt = self.queue_set().mode() == Mode::Exempt && !was_queued;
        let waited = request.started.map_or(0, |started| started - request.arrived);
        self.mutating.change(mark.access, -i64::from(was_queued), 1);
        self.events.push(now, subject, EventKind::Started { waited, was_queued, is_exempt });
    }

    /// Appends events for all other effects of an event. The level is now in the state that the event left.
    #[inline]
    fn settle(&mut self, now: Instant, wakers: &mut Wakers) {
        if let Some(id) = wakers.notes.first_started.take() {
            self.note_started(now, id, wakers);
            for id in wakers.notes.others_started.take() {
                self.note_started(now, id, wakers);
            }
        }
        if let Some(series) = wakers.notes.blocked.take() {
            self.events.push(now, EventSubject { series, ..EventSubject::LEVEL }, EventKind::Blocked);
        }
        if let Some(is_clean) = wakers.notes.epoch_advanced.take() {
            self.events.push(now, EventSubject::LEVEL, EventKind::MeterWoundBack { is_clean });
        }
        let Self { level, grants, events, .. } = self;
        events.end_call(|| super::core::numbers(level.queue_set(), grants.as_ref()));
    }

    /// Appends events for the effects of a change of the configuration.
    fn settle_change(&mut self, now: Instant, wakers: &mut Wakers) {
        self.events.push(now, EventSubject::LEVEL, EventKind::Reconfigured);
        self.settle(now, wakers);
    }

    /// Whether the level takes seats from a request that starts (FQ-23).
    #[inline]
    fn narrows(&self, work: WorkEstimate) -> bool {
        i64::from(work.final_seats) > self.queue_set().concurrency_limit()
    }

    /// The length of the queue that a request came through which was started at once, and whether the level is exempt.
    #[inline]
    fn passed_through(&self, queue: Option<usize>) -> (u32, bool) {
        match queue {
            Some(queue) => (length(self.queue_set().queue_length(queue) + 1), false),
            None => (NO_QUEUE, self.queue_set().mode() == Mode::Exempt),
        }
    }

    #[inline]
    fn ending(&self, id: RequestId, phase: Phase) -> Option<Ending> {
        let request = self.queue_set().request(id).filter(|request| request.phase == phase)?;
        let (mark, arrived, started) = (*request.payload, request.arrived, request.started);
        Some(Ending { mark, subject: mark.subject(id, request.work), arrived, started })
    }
}

/// The length of a queue, as events have it.
#[inline]
fn length(requests: usize) -> u32 {
    u32::try_from(requests).unwrap_or(NO_QUEUE - 1)
}

// === impl Ending ===

impl From<&Ended<Mark>> for Ending {
    fn from(ended: &Ended<Mark>) -> Self {
        let mark = ended.payload;
        let subject = mark.subject(ended.id, ended.work);
        Self { mark, subject, arrived: ended.arrived, started: ended.started }
    }
}

// === impl Mark ===

impl Mark {
    #[inline]
    fn subject(self, id: RequestId, work: WorkEstimate) -> EventSubject {
        EventSubject { id, series: self.series, seats: work.max_seats() }
    }
}

// === impl TimedOut ===

impl Effects<Mark> for TimedOut<'_> {
    fn started(&mut self, id: RequestId, mark: &mut Mark) {
        self.wakers.started(id, mark);
    }

    fn blocked(&mut self, mark: &Mark) {
        self.wakers.blocked(mark);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        self.wakers.epoch_advanced(clean);
    }

    fn timed_out(&mut self, ended: Ended<Mark>) {
        self.ended.push(ended);
    }
}
