//! A process in front of the service: a member of the fleet, the requests that it runs, and its clock.

use std::sync::Arc;

use evenkeel_engine::auto_limit::{Sample, Totals};
use evenkeel_engine::fleet_division::InstanceLoad;
use evenkeel_engine::time::Instant;
use evenkeel_fleet::{
    CurrentLoad, CurrentUsage, FleetSettings, InstanceId, Ledger, LimitInput, LoadSource, Member, ProcessNonce, Terms,
};

use super::seeded::SeededFault;
use super::{MS, Time};

/// What a member sees of its process.
#[derive(Debug)]
pub(crate) struct Observed {
    load: CurrentLoad,
    input: Option<LimitInput>,
}

#[derive(Debug)]
pub(crate) struct Process {
    /// A process that comes back has the name of the one before.
    pub(crate) name: u64,
    pub(crate) nonce: ProcessNonce,
    pub(crate) is_alive: bool,
    pub(crate) is_draining: bool,
    pub(crate) member: Member,
    /// How much faster its clock runs, in parts of a million.
    pub(crate) drift: i64,
    pub(crate) stopped_until: Time,
    pub(crate) stopped_total: Time,
    /// Cut off from etcd.
    pub(crate) cut_until: Time,
    /// Requests that have started here and whose end is not known here.
    pub(crate) in_use: u64,
    /// Those of them that have outlived the grant they started on.
    pub(crate) overrun: u64,
    /// Requests that the service works on.
    pub(crate) at_service: u64,
    pub(crate) wanted: u64,
    pub(crate) load: Arc<InstanceLoad>,
    /// What has happened here, if the fleet finds out how many seats there should be.
    pub(crate) totals: Option<Totals>,
    summed_until: Time,
    /// Requests take from a quarter of this to seven quarters.
    pub(crate) duration: Time,
    /// Seeded faults: what a faulty implementation would take for its grant and its renewal.
    faulty_grant: u64,
    faulty_renewal: Option<Instant>,
}

// === impl Observed ===

impl LoadSource for Observed {
    fn usage(&self) -> CurrentUsage {
        self.load.usage()
    }

    /// The limits of levels follow the seats that are found.
    fn load(&self, service_seats: u64) -> Arc<InstanceLoad> {
        let mut load = self.load.load(service_seats);
        if self.input.is_some() {
            for level in &mut Arc::make_mut(&mut load).levels {
                (level.nominal, level.max) = (service_seats * level.borrowing_weight / 6, service_seats);
                level.floor = level.nominal / 2;
            }
        }
        load
    }

    fn limit_input(&self) -> Option<LimitInput> {
        self.input
    }
}

// === impl Process ===

impl Process {
    pub(crate) fn new(
        name: u64,
        nonce: ProcessNonce,
        predecessor: Option<ProcessNonce>,
        settings: FleetSettings,
    ) -> Self {
        Self {
            name,
            nonce,
            is_alive: true,
            is_draining: false,
            member: Member::new(settings, nonce, predecessor, nonce.0),
            drift: 0,
            stopped_until: 0,
            stopped_total: 0,
            cut_until: 0,
            in_use: 0,
            overrun: 0,
            at_service: 0,
            wanted: 0,
            load: Arc::default(),
            totals: settings.auto.map(|_| Totals::default()),
            summed_until: 0,
            duration: 100 * MS,
            faulty_grant: 0,
            faulty_renewal: None,
        }
    }

    /// The time on its clock.
    pub(crate) fn clock(&self, now: Time, fault: Option<SeededFault>) -> Instant {
        let stood = if fault == Some(SeededFault::ClockThatStops) { self.stopped_total } else { 0 };
        Instant::from_nanos(now - stood + (now - stood) / 1_000_000 * self.drift)
    }

    pub(crate) fn is_stopped(&self, now: Time) -> bool {
        self.stopped_until > now
    }

    pub(crate) fn current_load(&self) -> Observed {
        let load = CurrentLoad { in_use: self.in_use, load: self.load.clone() };
        let input = |totals| LimitInput { totals, floor: 1, is_held_down: false };
        Observed { load, input: self.totals.map(input) }
    }

    /// Time passes until now. To be called before anything changes.
    pub(crate) fn pass(&mut self, now: Time) {
        let span = now - std::mem::replace(&mut self.summed_until, now);
        if let Some(totals) = &mut self.totals {
            let mut sample = Sample::default();
            sample.passed(span, u32::try_from(self.in_use).expect("a number of seats"), self.wanted > self.in_use);
            totals.add(span, &sample);
        }
    }

    /// A request has ended that took so long.
    pub(crate) fn note_end(&mut self, took: Time) {
        if let Some(totals) = &mut self.totals {
            let mut sample = Sample::default();
            sample.ended(0, took, 1, true);
            totals.add(0, &sample);
        }
    }

    /// How many seats may be used now, and whether that is a grant.
    pub(crate) fn limit(&self, now: Time, terms: Terms, fault: Option<SeededFault>) -> (u64, bool) {
        if !self.is_alive {
            return (0, false);
        }
        let clock = self.clock(now, fault);
        let mut allowance = self.member.allowance();
        match fault {
            Some(SeededFault::RenewalByKeepAlive | SeededFault::ExpiryFromResponse)
                if self.is_renewed(clock, terms) =>
            {
                // It does not see that its key is gone either.
                let grant = if self.member.id().is_some() { allowance.grant } else { self.faulty_grant };
                return (grant.max(allowance.floor), true);
            }
            Some(SeededFault::OlderLedgerApplied) => allowance.grant = self.faulty_grant,
            _ => {}
        }
        (allowance.seats(clock), clock < allowance.grant_until)
    }

    fn is_renewed(&self, clock: Instant, terms: Terms) -> bool {
        self.faulty_renewal.is_some_and(|renewal| clock - renewal < i64::from(terms.ttl_ms) * MS / 100 * 98)
    }

    /// A faulty implementation takes this for a renewal of what it has.
    pub(crate) fn renew_faultily(&mut self, clock: Instant) {
        self.faulty_renewal = self.faulty_renewal.max(Some(clock));
        if self.member.id().is_some() {
            self.faulty_grant = self.member.allowance().grant;
        }
    }

    /// A faulty implementation obeys this ledger, however old it is.
    pub(crate) fn obey_faultily(&mut self, ledger: &Ledger) {
        let entry = self.member.id().and_then(|id: InstanceId| ledger.entry(id));
        self.faulty_grant = entry.map_or(0, |entry| entry.grant);
    }
}
