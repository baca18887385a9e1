//! Takes requests in: each is classified, and started, put into a queue or rejected.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use evenkeel_engine::digest::Query;
use evenkeel_engine::drain::Advice;
use evenkeel_engine::queue_set::{Arrival, Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, Classification, LevelInfo, WorkEstimate};

use super::{FlowControl, FlowControlShared};
use crate::control::accounts::RequestAccount;
use crate::control::admission::Admission;
use crate::control::admit::{Admit, ArrivalOutcome, Arrived, Waiting};
use crate::control::core_events::Arriving;
use crate::control::cost_source::Costing;
use crate::control::digests::DigestId;
use crate::control::events;
use crate::control::level::Level;
use crate::control::long_running::Counting;
use crate::control::permit::Permit;
use crate::control::rejected::Rejected;
use crate::control::request::{Details, FlowRequest, Incoming, RunLength};
use crate::control::reused_box::ReusedBox;
use crate::control::shadow;
use crate::control::snapshot::Destination;
use crate::control::trace;
use crate::control::wakers::Wakers;
use crate::control::work::{EstimateWork, WorkInput};

// === impl FlowControl ===

impl FlowControl {
    /// Lets a request in: the future waits until the request may run, and gives its [`Permit`].
    ///
    /// The request arrives with the first poll, and leaves its queue when the future is dropped.
    pub fn admit<'a, W: EstimateWork>(&'a self, attributes: Attributes<'a>, work: W) -> Admit<'a, W> {
        self.admit_request(FlowRequest::new(attributes).work(work))
    }

    /// [`admit`](Self::admit) for a request about which there is more to say than attributes and work.
    pub fn admit_request<'a, W: EstimateWork>(&'a self, request: FlowRequest<'a, W>) -> Admit<'a, W> {
        Admit::new(self, request)
    }

    /// A request arrives now, before the future that it gives is polled: it is classified, and started, put into a queue or
    /// rejected. The future borrows nothing, so that it can be sent to another task.
    pub fn arrive<W: EstimateWork>(&self, attributes: Attributes<'_>, work: W) -> Arrived {
        self.arrive_request(FlowRequest::new(attributes).work(work))
    }

    /// [`arrive`](Self::arrive) for a request about which there is more to say than attributes and work.
    #[expect(clippy::needless_pass_by_value, reason = "a request arrives once")]
    pub fn arrive_request<W: EstimateWork>(&self, request: FlowRequest<'_, W>) -> Arrived {
        Arrived::new(self.take_in_request(&request))
    }

    #[inline]
    pub(crate) fn take_in_request<W: EstimateWork>(&self, request: &FlowRequest<'_, W>) -> ArrivalOutcome {
        let FlowRequest { attributes, work, patience, details, run_length, watches, times } = request;
        let (attributes, watches) = (*attributes, *watches);
        let (head, digest) = (details.as_deref().map(Details::head), DigestId::default());
        let estimate = |level: &LevelInfo| {
            let query = Query::new("");
            work.estimate(&WorkInput { attributes, level, query, watches, extra: &() })
        };
        self.take_in(&Incoming {
            attributes,
            estimate,
            patience,
            head,
            digest,
            run_length: *run_length,
            watches,
            times: times.as_ref(),
            is_within_rate: false,
            costing: Costing { route: work.route_cost(&()), source: None, made: None },
        })
    }

    #[inline]
    pub(crate) fn take_in<E: Fn(&LevelInfo) -> WorkEstimate>(&self, request: &Incoming<'_, E>) -> ArrivalOutcome {
        loop {
            // A level that is gone by the time its lock is taken was in a configuration that is gone too.
            if let Some(outcome) = self.try_admit(request) {
                return outcome;
            }
            // The thread that removed the level holds this lock until the next configuration is in place.
            drop(self.shared.control());
        }
    }

    /// `None` if the level was removed between looking it up and taking its lock.
    #[inline]
    fn try_admit<E: Fn(&LevelInfo) -> WorkEstimate>(&self, request: &Incoming<'_, E>) -> Option<ArrivalOutcome> {
        let snapshot = self.shared.snapshot.load();
        let class = snapshot.configuration.classify(request.attributes);
        if self.shared.canary.is_on()
            && let Some(canary) = self.shared.canary.of_flow(&class, request.attributes)
        {
            return Some(canary.take_in(request));
        }
        let destination = snapshot.destination(class.index);
        if let Some(unit) = request.costing.route.unit
            && let Some(of_route) = destination.of_route(unit)
            && let Some(accounts) = &of_route.accounts
        {
            return self.try_admit_on_account(request, &class, &of_route, accounts);
        }
        if let Some(accounts) = &destination.accounts {
            return self.try_admit_on_account(request, &class, destination, accounts);
        }
        let work = request.work_in(class.schema);
        self.enter(request, &class, destination, work, &mut None)
    }

    /// A request that is classified and estimated comes to its level. `None` if the level was removed: its account stays where it is then.
    #[inline]
    pub(super) fn enter<E: Fn(&LevelInfo) -> WorkEstimate>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        destination: &Arc<Destination>,
        work: WorkEstimate,
        account: &mut Option<ReusedBox<RequestAccount>>,
    ) -> Option<ArrivalOutcome> {
        let Destination { level, upkeep, long_running, .. } = &**destination;
        let mut wakers = Wakers::default();
        let now = upkeep.clock.now();
        upkeep.before_event(now);
        let mark = request.mark(destination);
        let details = request.head.map(|head| ReusedBox::new(|| head.to_details()));
        let mut core = level.lock_for_event();
        if core.is_removed {
            return None;
        }
        let now = core.at(now);
        if let Some(times) = request.times {
            times.note_arrival(now);
        }
        // Requests that take no seat are bounded in the same way as those that have given their seats back.
        let is_long_running = request.run_length != RunLength::Ordinary || work.is_seatless();
        if is_long_running {
            let entered = long_running.enter(class.schema.level.max_long_running);
            let (Ok(others) | Err(others)) = entered;
            self.shared.recorder.note_long_running(class.flow_hash, others);
            if entered.is_err() {
                let reason = Rejection::TooManyLongRunning;
                core.refuse(now, mark, class.flow(), work, reason);
                drop(core);
                let advice = level.listeners().retry.advise_long_running();
                let rejected = self.reject(request, class, destination, work, (reason, advice), now);
                return Some(ArrivalOutcome::Rejected(Box::new(rejected)));
            }
        }
        let wait_limit = request.patience.limit(self.shared.wait_limit_of(&class.schema.level), self.shared.preset);
        let wait_until = now + wait_limit;
        let watches = request.watches;
        let arriving = Arriving { flow: class.flow(), work, wait_until, mark, details, watches, is_long_running };
        let (id, queue, is_started, change) = match core.arrive(now, arriving, &mut wakers) {
            Arrival::Started { id, queue } => (id, queue, true, None),
            Arrival::Waiting { id, queue } => (id, Some(queue), false, core.take_earlier_timeout()),
            Arrival::Rejected { reason, queue, .. } => {
                drop(core);
                // Before any task is woken: a waker that panics must not cost a place among the long-running requests.
                if is_long_running {
                    long_running.leave();
                }
                let (advice, waiting) = level.advise();
                wakers.wake();
                let mut rejected = self.reject(request, class, destination, work, (reason, advice), now);
                (rejected.queue, rejected.position) = (number(queue), u32::try_from(waiting + 1).ok());
                return Some(ArrivalOutcome::Rejected(Box::new(rejected)));
            }
        };
        let position = if is_started { 0 } else { u32::try_from(core.queue_set().waiting()).unwrap_or(u32::MAX) };
        let is_batch = core.events.is_batch();
        drop(core);
        let is_revocable = class.schema.level.is_revocable && !work.is_seatless();
        // Made before any task is woken: a waker that panics must not cost seats.
        let admission = ReusedBox::new(|| Admission {
            destination: Arc::clone(destination),
            id,
            seats: AtomicU32::new(work.max_seats()),
            queue: number(queue),
            position,
            counting: Counting::new(is_long_running),
            times: request.times.cloned(),
            has_expired: false,
            end: AtomicU8::new(events::RunEnd::default().number()),
            account: account.take(),
            ticket: is_revocable.then(|| upkeep.revoker.add(level.id, id)),
        });
        if let Some(change) = change {
            upkeep.schedule(level, change, &mut wakers);
        }
        wakers.wake();
        self.tell_of_arrival(request, class, work, level, Ok(id), now);
        level.hand_on_batch(is_batch);
        if !is_started {
            upkeep.pulse.note_waiting();
            trace::queued(class.schema, work);
        }
        Some(if is_started {
            ArrivalOutcome::Started(Permit::new(admission))
        } else {
            ArrivalOutcome::Waiting(Waiting::new(admission, wait_until))
        })
    }

    /// Reports that a request is rejected when it arrives, and makes the error for its caller. No lock is held.
    pub(super) fn reject<E: Fn(&LevelInfo) -> WorkEstimate>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        destination: &Arc<Destination>,
        work: WorkEstimate,
        (reason, advice): (Rejection, Advice),
        now: Instant,
    ) -> Rejected {
        request.note_rejected(now);
        self.tell_of_arrival(request, class, work, &destination.level, Err(reason), now);
        trace::rejected(class.schema, work, reason);
        Rejected::new(reason, advice, work.max_seats(), None, destination)
    }

    /// Reports the arrival of a request to the attribution, the shadow, the recorder and the listener of arrivals. Nearly always
    /// none of them wants to know. No lock is held.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "so that what would be told is not put together for nobody")]
    fn tell_of_arrival<E: Fn(&LevelInfo) -> WorkEstimate>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        work: WorkEstimate,
        level: &Level,
        id: Result<RequestId, Rejection>,
        at: Instant,
    ) {
        let FlowControlShared { arrivals, shadow, recorder, .. } = &*self.shared;
        let wants_name = level.wanted_names.as_ref().is_some_and(|wanted| wanted.may_want(&class.flow()));
        if wants_name || arrivals.0.is_some() || shadow.is_on() || recorder.is_on() {
            self.tell_somebody_of_arrival(request, class, work, level, id, at);
        }
    }

    #[inline(never)]
    fn tell_somebody_of_arrival<E: Fn(&LevelInfo) -> WorkEstimate>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        work: WorkEstimate,
        level: &Level,
        id: Result<RequestId, Rejection>,
        at: Instant,
    ) {
        if let Some(wanted) = &level.wanted_names
            && wanted.may_want(&class.flow())
            && let Some(attribution) = &mut level.listeners().attribution
        {
            attribution.learn_name(&class.flow());
        }
        if let Some(listener) = &self.shared.arrivals.0 {
            listener.on_arrival(&events::Arrival {
                attributes: request.attributes,
                flow_schema: &class.schema.name,
                level: level.id,
                flow_distinguisher: class.distinguisher,
                flow_hash: class.flow_hash,
                work,
                request: id.ok(),
                at,
            });
        }
        if self.shared.shadow.is_on() {
            self.tell_shadow(request, class, work, id.ok(), at);
        }
        if self.shared.recorder.is_on() {
            let limit = request.patience.limit(self.shared.wait_limit_of(&class.schema.level), self.shared.preset);
            self.shared.recorder.tell_arrival(request.attributes, class, work, limit, id, at);
        }
    }

    #[inline(never)]
    fn tell_shadow<E: Fn(&LevelInfo) -> WorkEstimate>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        work: WorkEstimate,
        id: Option<RequestId>,
        at: Instant,
    ) {
        let arriving = shadow::Arriving {
            attributes: request.attributes,
            class,
            work,
            patience: request.patience,
            run_length: request.run_length,
            id: id.unwrap_or(RequestId::NONE),
            at,
            is_observed: false,
            wait_limit_default: self.shared.wait_limit_default(),
            preset: self.shared.preset,
        };
        self.shared.shadow.tell_arrival(&arriving, |class| request.work_in(class.schema));
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// How long requests of a level wait, if nothing else is said.
    #[inline]
    pub(crate) fn wait_limit_of(&self, level: &LevelInfo) -> Nanos {
        let limit = level.wait_limit.filter(|limit| *limit >= 0);
        limit.unwrap_or_else(|| self.wait_limit_ns.load(Ordering::Relaxed))
    }
}

/// The number of a queue. There are never so many that it does not fit.
fn number(queue: Option<usize>) -> Option<u32> {
    queue.and_then(|queue| u32::try_from(queue).ok())
}
