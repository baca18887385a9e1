//! Takes in requests whose flow schema says something of costs or rates (CO-3, RL-2).

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::drain::Advice;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::rate::OverRate;
use evenkeel_engine::time::{Instant, Nanos, SECOND};
use evenkeel_engine::{Attributes, Classification, FlowRate, LevelInfo, WorkEstimate};

use super::FlowControl;
use crate::control::accounts::{Passed, RequestAccount, SchemaAccounts, Taken, Throttled, ThrottledRequest, Wait};
use crate::control::admit::{ArrivalOutcome, Waiting};
use crate::control::cost_source::{Costing, RouteCost};
use crate::control::flight::{FlightRate, RateOutcome};
use crate::control::request::{Details, Incoming, Patience};
use crate::control::reused_box::ReusedBox;
use crate::control::snapshot::Destination;
use crate::control::trace;
use crate::sync::Mutex;

// === impl FlowControl ===

impl FlowControl {
    /// Takes a request in: its seats follow from its expected cost, and the time at which it may go on from the rate of its flow.
    /// `None` if its level was removed.
    #[cold]
    pub(super) fn try_admit_on_account<E: Fn(&LevelInfo) -> WorkEstimate>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        destination: &Arc<Destination>,
        accounts: &Arc<SchemaAccounts>,
    ) -> Option<ArrivalOutcome> {
        // Hashed already where the level tells flows apart.
        let flow =
            if class.schema.level.has_flows { class.flow_hash } else { class.schema.flow_key(request.attributes) };
        let route = request.costing.route.route;
        let counted = accounts.unit.as_ref().map(|_| accounts.class_of(request.attributes, route, flow));
        let learnt = counted.as_ref().and_then(|class| accounts.expected(class));
        let (expected, place) = learnt.map(|learnt| (learnt.cost, learnt.place)).unzip();
        let mut meter = request.costing.meter(accounts.unit.as_ref());
        let expected = match &meter {
            Some(meter) => meter.lock().expect(expected),
            None => expected,
        };
        let work = accounts.work_of(expected, || request.work_in(class.schema));
        let mut taken = Taken { flow, amount: 0 };
        let mut account = |taken| {
            let class = counted?;
            let seats = work.max_seats();
            Some(ReusedBox::new(|| RequestAccount::new(accounts, class, place, expected, meter.take(), taken, seats)))
        };
        if let Some(rate) = accounts.rate.filter(|_| !request.is_within_rate) {
            taken.amount = rate.taken_by(expected.unwrap_or_default());
            let limit = request.patience.limit(self.shared.wait_limit_of(&class.schema.level), self.shared.preset);
            let now = destination.upkeep.clock.now();
            let latest = now + limit;
            let passage = accounts.take(flow, taken.amount, now, latest);
            let is_at_once = matches!(&passage, Ok(Passed { ticket: None, at }) if *at <= now);
            if is_at_once || passage.is_err() {
                self.note_rate(class.flow_hash, taken, now, RateOutcome::AtOnce);
            }
            match passage {
                Ok(_) if is_at_once => {}
                Ok(Passed { at: until, ticket }) => {
                    if let Some(times) = request.times {
                        times.note_arrival(now);
                    }
                    let mark = request.mark(destination);
                    let wait = Wait { taken, arrived: now, until, ticket, latest, mark };
                    let request = request.to_throttled(class, work, account(taken));
                    trace::queued(class.schema, work);
                    let throttled = Throttled::new(self, destination, accounts, wait, request);
                    return Some(ArrivalOutcome::Waiting(Waiting::throttled(throttled)));
                }
                Err(over) => return self.reject_over_rate(request, class, destination, work, (&rate, over)),
            }
        }
        let mut account = account(taken);
        let outcome = self.enter(request, class, destination, work, &mut account);
        if matches!(outcome, Some(ArrivalOutcome::Rejected(_)) | None) {
            // The request was rejected, or comes here again.
            accounts.give_back(taken, destination.upkeep.clock.now());
        }
        if outcome.is_none()
            && let Some(account) = &mut account
        {
            request.costing.keep_meter(account.meter.take());
        }
        outcome
    }

    /// Tells the recorder what the request that arrives next has asked of the rate of its flow.
    fn note_rate(&self, flow_hash: u64, taken: Taken, at: Instant, outcome: RateOutcome) {
        let recorder = &self.shared.recorder;
        if recorder.is_on() {
            let Taken { flow, amount } = taken;
            recorder.note_rate(flow_hash, FlightRate { at: at.as_nanos(), flow, amount, outcome });
        }
    }

    fn reject_over_rate<E: Fn(&LevelInfo) -> WorkEstimate>(
        &self,
        request: &Incoming<'_, E>,
        class: &Classification<'_>,
        destination: &Arc<Destination>,
        work: WorkEstimate,
        (rate, over): (&FlowRate, OverRate),
    ) -> Option<ArrivalOutcome> {
        let Destination { level, upkeep, .. } = &**destination;
        let now = upkeep.clock.now();
        upkeep.before_event(now);
        let reason = Rejection::RateLimit;
        let mut core = level.lock_for_event();
        if core.is_removed {
            return None;
        }
        let now = core.at(now);
        core.refuse(now, request.mark(destination), class.flow(), work, reason);
        drop(core);
        if let Some(times) = request.times {
            times.note_arrival(now);
        }
        let advice = over_rate_advice(over.conforms_at - now);
        let mut rejected = self.reject(request, class, destination, work, (reason, advice), now);
        rejected.rate = Some(rate.rate);
        Some(ArrivalOutcome::Rejected(Box::new(rejected)))
    }
}

/// The advice for a client whose request would conform after that time.
fn over_rate_advice(wait: Nanos) -> Advice {
    let seconds = u64::try_from(wait).unwrap_or(0).div_ceil(SECOND.unsigned_abs()).max(1);
    let expected_wait = Some(Duration::from_nanos(wait.max(0).unsigned_abs()));
    Advice { retry_after: Duration::from_secs(seconds), expected_wait }
}

// === impl Incoming ===

impl<E> Incoming<'_, E> {
    /// The request with texts of its own, to wait for its rate.
    fn to_throttled(
        &self,
        class: &Classification<'_>,
        work: WorkEstimate,
        account: Option<ReusedBox<RequestAccount>>,
    ) -> ThrottledRequest {
        let Attributes { user, request } = self.attributes;
        ThrottledRequest {
            user: self.head.map_or_else(|| Arc::new(user.clone()), |head| Arc::clone(head.user)),
            info: request.clone().into_owned(),
            distinguisher: class.distinguisher.into(),
            flow_hash: class.flow_hash,
            index: class.index,
            details: self.head.map(crate::control::request::Head::to_details),
            work,
            patience: *self.patience,
            digest: self.digest,
            run_length: self.run_length,
            watches: self.watches,
            times: self.times.cloned(),
            account,
            unit: self.costing.route.unit.cloned(),
            route: self.costing.route.route,
        }
    }
}

// === impl ThrottledRequest ===

impl ThrottledRequest {
    /// Where it belongs.
    fn class<'a>(&'a self, destination: &'a Destination) -> Classification<'a> {
        Classification {
            index: self.index,
            schema: destination.schema(),
            distinguisher: &self.distinguisher,
            flow_hash: self.flow_hash,
        }
    }

    /// How long it may still wait when it has waited for so long.
    fn patience_after(&self, waited: Duration) -> Patience {
        let Patience { received_ago, deadline_in, .. } = self.patience;
        Patience {
            received_ago: received_ago.saturating_add(waited),
            deadline_in: deadline_in.map(|left| left.saturating_sub(waited)),
            ..self.patience
        }
    }
}

// === impl Throttled ===

impl Throttled {
    /// The client of a request that waited for its rate has left, or has run out of time.
    pub(crate) fn note_left(&self, request: &ThrottledRequest) {
        let (destination, reason) = (&self.destination, self.reason_if_dropped());
        let now = destination.upkeep.clock.now();
        destination.upkeep.before_event(now);
        let mut core = destination.level.lock_for_event();
        let now = core.at(now);
        let class = request.class(destination);
        core.refuse(now, self.mark, class.flow(), request.work, reason);
        drop(core);
        if let Some(times) = &request.times {
            times.note_end(None, now);
        }
        let recorder = &self.flow_control.shared.recorder;
        if recorder.is_on() {
            self.flow_control.note_rate(class.flow_hash, self.taken, self.arrived, RateOutcome::Left);
            let attributes = Attributes { user: &request.user, request: &request.info };
            recorder.tell_arrival(attributes, &class, request.work, (self.latest - now).max(0), Err(reason), now);
        }
        trace::gave_up(destination.schema(), reason);
    }

    /// Its time has come: it goes on to its level. `None` if it has done so before.
    pub(crate) fn go_on(mut self: Box<Self>) -> Option<ArrivalOutcome> {
        let now: Instant = self.destination.upkeep.clock.now();
        let late = self.conforms_late(now);
        let mut request = self.take_request(late.is_none())?;
        let waited = Duration::from_nanos((now - self.arrived).max(0).unsigned_abs());
        let (work, mut account) = (request.work, request.account.take());
        let meter = Mutex::new(None);
        let patience = request.patience_after(waited);
        let incoming = Incoming {
            attributes: Attributes { user: &request.user, request: &request.info },
            estimate: |_: &LevelInfo| work,
            patience: &patience,
            head: request.details.as_ref().map(Details::head),
            digest: request.digest,
            run_length: request.run_length,
            watches: request.watches,
            times: request.times.as_ref(),
            is_within_rate: true,
            costing: Costing::again(RouteCost::new(request.unit.as_ref(), request.route), &meter),
        };
        let class = request.class(&self.destination);
        self.flow_control.note_rate(class.flow_hash, self.taken, self.arrived, RateOutcome::Waited);
        let outcome = match (late, &self.accounts.rate) {
            (Some(conforms_at), Some(rate)) => {
                let over = (rate, OverRate { conforms_at });
                self.flow_control.reject_over_rate(&incoming, &class, &self.destination, work, over)
            }
            _ => self.flow_control.enter(&incoming, &class, &self.destination, work, &mut account),
        };
        let outcome = outcome.unwrap_or_else(|| {
            // The level is gone, and the request is classified anew by what is left of it.
            incoming.costing.keep_meter(account.as_mut().and_then(|account| account.meter.take()));
            self.flow_control.take_in(&incoming)
        });
        if matches!(outcome, ArrivalOutcome::Rejected(_)) && late.is_none() {
            self.accounts.give_back(self.taken, now);
        }
        Some(outcome)
    }
}
