//! `RequestAccount`: the expected cost of a request and the cost that has arisen, until it ends.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::LocalKey;

use evenkeel_api::annotations::CostUnit;
use evenkeel_engine::cost::{Adjustment, ClassPlace, CostAccount, CostClass, Settlement};
use evenkeel_engine::time::{Instant, SECOND};

use super::schema_accounts::SchemaAccounts;
use crate::control::cost_source::Meter;
use crate::control::events::CostKind;
use crate::control::reused_box::{Reusable, SpareBoxes};
use crate::sync::{Mutex, MutexGuard, PoisonError};

/// The account of a request whose cost counts. The accounts of its flow schema are an argument: the request has them with its
/// destination.
#[derive(Debug)]
pub(crate) struct RequestAccount {
    class: CostClass,
    /// Where its class was found when it arrived, if it was.
    place: Option<ClassPlace>,
    taken: Taken,
    /// The meter that counts its cost, if neither the layer nor the service does.
    pub(crate) meter: Option<Meter>,
    state: Mutex<CostAccount>,
    /// Whether its response has begun and has not ended: a request that ends in this state was cut off.
    is_unfinished: AtomicBool,
}

/// What the cost of a request has come to at its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    pub(crate) settlement: Settlement,
    pub(crate) expected: f64,
    /// What it is counted in.
    pub(crate) unit: Option<CostKind>,
}

/// What a request took of the rate of its flow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) flow: u64,
    pub(crate) amount: u64,
}

thread_local! {
    static SPARE: SpareBoxes<RequestAccount> = const { RefCell::new(Vec::new()) };
}

// === impl RequestAccount ===

impl Reusable for RequestAccount {
    #[inline]
    fn spare() -> &'static LocalKey<SpareBoxes<Self>> {
        &SPARE
    }
}

impl RequestAccount {
    pub(crate) fn new(
        accounts: &SchemaAccounts,
        class: CostClass,
        place: Option<ClassPlace>,
        expected: Option<f64>,
        meter: Option<Meter>,
        taken: Taken,
        seats: u32,
    ) -> Self {
        let state = CostAccount::open(expected.unwrap_or_default(), seats, accounts.seat_rule, accounts.price());
        Self { class, place, taken, meter, state: Mutex::new(state), is_unfinished: AtomicBool::new(false) }
    }

    /// The account itself, locked. A thread that holds it takes no other lock.
    pub(crate) fn state(&self) -> MutexGuard<'_, CostAccount> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The request has waited, and runs now. Returns the seats that it should have by now, if the number has changed.
    pub(crate) fn expect_anew(&self, accounts: &SchemaAccounts) -> Option<u32> {
        self.state().set_price(accounts.price());
        let learnt = accounts.expected(&self.class).map(|expected| expected.cost);
        let expected = match &self.meter {
            Some(meter) => meter.lock().expect(learnt),
            None => learnt,
        };
        self.state().expect_anew(expected?)
    }

    /// The response to the request begins: if the response does not come to its end, the request teaches nothing.
    pub(crate) fn begin_response(&self) {
        self.is_unfinished.store(true, Ordering::Relaxed);
    }

    /// The response to the request has come to its end.
    pub(crate) fn end_response(&self) {
        self.is_unfinished.store(false, Ordering::Relaxed);
    }

    /// The request has ended: what remains to be charged.
    pub(crate) fn settle(&mut self, accounts: &SchemaAccounts, started: Instant, now: Instant) -> Settled {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.set_price(accounts.price());
        if matches!(accounts.unit, Some(CostUnit::Time)) {
            #[expect(clippy::cast_precision_loss, reason = "a time")]
            let seconds = (now - started).max(0) as f64 / SECOND as f64;
            state.end_with(seconds);
        }
        let unit = accounts.unit.as_ref().map(CostKind::of);
        Settled { settlement: state.settle(started, now), expected: state.expected(), unit }
    }

    /// The actual cost replaces the assumed one (CO-5, RL-3). To be called without a lock.
    pub(crate) fn close(&mut self, accounts: &SchemaAccounts, settled: &Settled, has_failed: bool, now: Instant) {
        let teaches = !has_failed && !*self.is_unfinished.get_mut();
        let Settled { settlement, expected, .. } = settled;
        accounts.note_end((&self.class, self.place), *expected, settlement, teaches);
        if accounts.corrects_rate() {
            #[expect(clippy::cast_possible_truncation, reason = "such a cast stays within bounds")]
            let cost = settlement.cost.round() as i64;
            let taken = i64::try_from(self.taken.amount).unwrap_or(i64::MAX);
            accounts.correct(self.taken.flow, cost.saturating_sub(taken), now);
        }
    }

    /// The request never ran: it gives back what it took of the rate.
    pub(crate) fn abandon(&self, accounts: &SchemaAccounts, now: Instant) {
        if accounts.corrects_rate() {
            accounts.give_back(self.taken, now);
        }
    }

    /// Notes cost that has arisen. Returns what follows, if anything.
    pub(crate) fn note(&self, step: impl FnOnce(&mut CostAccount) -> Option<Adjustment>) -> Option<Adjustment> {
        step(&mut self.state())
    }
}
