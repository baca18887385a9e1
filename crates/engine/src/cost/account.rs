//! `CostAccount`: the expected cost of a request, the cost that has arisen, and what follows (CO-4, CO-5).

use super::sane;
use super::seat_rule::SeatRule;
use crate::time::{Instant, Nanos};

/// The account of one request while it runs.
///
/// # How it is called
///
/// It is [opened](Self::open) with what is expected. Whenever some cost has arisen, [`arise`](Self::arise) says what to do; most steps
/// cost a comparison and nothing else. What is known beforehand is [`announce`](Self::announce)d, and a service that counts itself
/// [`report`](Self::report)s. At the end, [`settle`](Self::settle) says what is left to charge and what to learn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CostAccount {
    expected: f64,
    arisen: f64,
    /// What the whole request cost, if the service has said.
    reported: Option<f64>,
    rule: Option<SeatRule>,
    /// Seat-nanoseconds for each unit of cost; `None` if the flow is charged by the time alone.
    price: Option<f64>,
    seats: u32,
    /// Since when it has these seats; `None`: since it has run.
    since: Option<Instant>,
    /// The seat-nanoseconds before it had these seats.
    held: f64,
    /// What was charged beyond the seat-time, in seat-nanoseconds.
    charged: f64,
    /// The cost up to which it has been charged.
    charged_up_to: f64,
    /// The cost up to which nothing has to be done.
    next_step: f64,
}

/// The change to a request that costs more than was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Adjustment {
    /// The seats that it holds from now on; `None`: as many as before.
    pub seats: Option<u32>,
    /// The seat-time that its flow is charged in addition.
    pub charge: Nanos,
}

/// How an account is closed.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Settlement {
    /// What the request cost.
    pub cost: f64,
    /// The seat-time that its flow is charged in addition; below zero if it was charged too much.
    pub charge: Nanos,
    /// The seat-nanoseconds for which it held its seats.
    pub seat_time: f64,
}

/// Steps are at least this much apart, as a part of what has arisen: however fine the steps of a service are, there are few.
const STEP: f64 = 0.125;

// === impl CostAccount ===

impl CostAccount {
    /// The account of a request that is expected to cost so much and takes so many seats. `rule`: how many seats it takes as it goes on,
    /// if that depends on its cost. `price`: what its flow is charged for each unit, if that is known and not just the time.
    pub fn open(expected: f64, seats: u32, rule: Option<SeatRule>, price: Option<f64>) -> Self {
        let expected = sane(expected);
        let mut account = Self {
            expected,
            arisen: 0.0,
            reported: None,
            rule,
            price,
            seats,
            since: None,
            held: 0.0,
            charged: 0.0,
            charged_up_to: expected,
            next_step: 0.0,
        };
        account.plan_next_step();
        account
    }

    /// What its flow is charged for each unit by what is known now; it stays as it was if nothing is. A price that was not known when the
    /// request arrived is known when it ends.
    pub fn set_price(&mut self, price: Option<f64>) {
        self.price = price.or(self.price);
    }

    /// What it was expected to cost.
    pub fn expected(&self) -> f64 {
        self.expected
    }

    /// What has arisen so far, or what was reported.
    pub fn cost(&self) -> f64 {
        self.reported.unwrap_or(self.arisen)
    }

    /// The seats that it holds.
    pub fn seats(&self) -> u32 {
        self.seats
    }

    /// The request has waited, and is about to run: the cost that is expected by now, and the seats that follow, if they are others.
    pub fn expect_anew(&mut self, expected: f64) -> Option<u32> {
        self.expected = sane(expected);
        self.charged_up_to = self.expected;
        let seats = self.rule.map(|rule| rule.seats(self.expected)).filter(|seats| *seats != self.seats);
        self.seats = seats.unwrap_or(self.seats);
        self.plan_next_step();
        seats
    }

    /// Adds cost that has arisen. Returns what is to be done; `None` for most steps.
    #[inline]
    pub fn arise(&mut self, more: f64) -> Option<Adjustment> {
        self.arisen += sane(more);
        if self.arisen <= self.next_step { None } else { self.step(self.arisen) }
    }

    /// Sets the cost that has arisen in all. Returns what is to be done.
    #[inline]
    pub fn arisen_in_all(&mut self, cost: f64) -> Option<Adjustment> {
        self.arisen = sane(cost);
        if self.arisen <= self.next_step { None } else { self.step(self.arisen) }
    }

    /// The request is over, and this much has arisen in all. Nothing is to be done until it is [settled](Self::settle).
    pub fn end_with(&mut self, cost: f64) {
        self.arisen = sane(cost);
    }

    /// The whole request costs this much, whatever has arisen: the service says so.
    pub fn report(&mut self, cost: f64) -> Option<Adjustment> {
        self.reported = Some(sane(cost));
        self.announce(cost)
    }

    /// Sets the cost that the request will have if it comes to its end: its seats follow, up or down.
    pub fn announce(&mut self, cost: f64) -> Option<Adjustment> {
        let cost = sane(cost).max(self.arisen);
        let fewer = self.rule.map(|rule| rule.seats(cost)).filter(|seats| *seats < self.seats);
        let adjustment = self.step(cost);
        match (adjustment, fewer) {
            (adjustment, None) => adjustment,
            (adjustment, fewer) => Some(Adjustment { seats: fewer, ..adjustment.unwrap_or_default() }),
        }
    }

    #[cold]
    fn step(&mut self, cost: f64) -> Option<Adjustment> {
        let seats = self.rule.map(|rule| rule.seats(cost)).filter(|seats| *seats > self.seats);
        let mut charge = 0;
        if let Some(price) = self.price.filter(|_| cost > self.charged_up_to) {
            charge = whole((cost - self.charged_up_to) * price);
            #[expect(clippy::cast_precision_loss, reason = "the same number as was charged")]
            let charged = charge as f64;
            self.charged += charged;
            self.charged_up_to = cost;
        }
        self.plan_next_step();
        (seats.is_some() || charge > 0).then_some(Adjustment { seats, charge })
    }

    /// The request holds so many seats from now on, and has run since then.
    pub fn set_seats(&mut self, started: Instant, now: Instant, seats: u32) {
        self.held = self.seat_time(started, now);
        (self.since, self.seats) = (Some(now), seats);
        self.plan_next_step();
    }

    /// The request has ended: what it cost, and what is left to charge so that its flow has been charged exactly that.
    pub fn settle(&self, started: Instant, now: Instant) -> Settlement {
        let (cost, seat_time) = (self.cost(), self.seat_time(started, now));
        let charge = self.price.map_or(0, |price| whole(cost * price - seat_time - self.charged));
        Settlement { cost, charge, seat_time }
    }

    /// The seat-nanoseconds for which it has held its seats.
    fn seat_time(&self, started: Instant, now: Instant) -> f64 {
        let since = self.since.map_or(started, |since| since.max(started));
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of some hundred days are exact")]
        let span = (now - since).max(0) as f64;
        self.held + span * f64::from(self.seats)
    }

    fn plan_next_step(&mut self) {
        // If the level has fewer seats than the rule asks for, the request holds all of them already: asking for more would not
        // help.
        let known = self.charged_up_to.max(self.arisen);
        let boundary = self.rule.map_or(f64::INFINITY, |rule| rule.cost_of(self.seats));
        let price = if self.price.is_some() { known } else { f64::INFINITY };
        self.next_step = boundary.min(price).max(self.arisen * (1.0 + STEP));
    }
}

/// Whole nanoseconds.
fn whole(seat_time: f64) -> Nanos {
    #[expect(clippy::cast_possible_truncation, reason = "such a cast stays within bounds")]
    let nanos = seat_time.round() as Nanos;
    nanos
}
