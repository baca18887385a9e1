//! Checks that the service never gets more than it has.

use evenkeel_fleet::{Ledger, Terms};

use super::Time;
use super::process::Process;
use super::seeded::SeededFault;

#[derive(Debug)]
pub(crate) struct Checker {
    /// The seats of the service. After they are lowered, what was held before.
    seats: u64,
    /// The most that all floors together may be, likewise (FL-9).
    floors: u64,
    /// Whether all requests are shorter than the grace: then everything in flight counts, whatever it started on.
    is_bounded: bool,
    pub(crate) violation: Option<String>,
    /// What has been seen, to know that the simulation does something.
    pub(crate) in_use_max: u64,
    pub(crate) overrun_max: u64,
}

// === impl Checker ===

impl Checker {
    pub(crate) fn new(seats: u64, is_bounded: bool) -> Self {
        Self { seats, floors: 0, is_bounded, violation: None, in_use_max: 0, overrun_max: 0 }
    }

    /// Before a ledger takes effect: what it promises is no more than there is (FL-6, FL-9).
    pub(crate) fn check_ledger(&mut self, now: Time, ledger: &Ledger) {
        let held = ledger.seats_held();
        self.seats = ledger.seats.max(self.seats.min(held));
        if held > self.seats {
            self.report(now, &format!("the ledger has {held} of {} seats: {ledger:?}", self.seats));
        }
        let floors: u64 = ledger.entries.iter().map(|entry| entry.floor_held).sum();
        let floors_max = ledger.seats * ledger.floor_percent / 100;
        // What was held when the seats of the service were lowered is given back with acknowledgements.
        self.floors = floors_max.max(self.floors.min(floors));
        if floors > self.floors {
            self.report(now, &format!("floors of {floors} seats, and {} may be: {ledger:?}", self.floors));
        }
        for entry in &ledger.entries {
            if entry.floor > entry.floor_held || entry.floor > entry.grant {
                self.report(now, &format!("a floor above what is held: {entry:?}"));
            }
        }
    }

    /// After every event.
    pub(crate) fn check(&mut self, now: Time, processes: &mut [Process], terms: Terms, fault: Option<SeededFault>) {
        let (mut in_use, mut may_use, mut at_service, mut overruns) = (0, 0, 0, 0);
        for process in processes.iter_mut().filter(|process| process.is_alive) {
            let (limit, is_grant) = process.limit(now, terms, fault);
            let above = process.in_use.saturating_sub(limit);
            // A lowered grant leaves requests that count until they end. Those that outlive a grant are an overrun.
            process.overrun = if is_grant { process.overrun.min(above) } else { above };
            let counted = process.in_use - process.overrun;
            in_use += counted;
            may_use += counted.max(limit);
            at_service += process.at_service;
            overruns += process.overrun;
        }
        self.in_use_max = self.in_use_max.max(in_use);
        self.overrun_max = self.overrun_max.max(overruns);
        let seats = self.seats;
        if in_use > seats {
            self.report(now, &format!("{in_use} of {seats} seats are in use"));
        } else if may_use > seats {
            self.report(now, &format!("{may_use} of {seats} seats are in use or may be at any moment"));
        } else if self.is_bounded && at_service > seats {
            self.report(now, &format!("{at_service} requests are in flight at a service of {seats} seats"));
        }
    }

    fn report(&mut self, now: Time, what: &str) {
        self.violation.get_or_insert_with(|| format!("at {now} ns: {what}"));
    }
}
