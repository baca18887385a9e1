//! The ledger that follows from what all instances publish (FL-4 to FL-10).

use evenkeel_engine::fleet_division::{InstanceLoad, divide};
use evenkeel_engine::time::Instant;

use crate::FleetSettings;
use crate::ledger::{InstanceId, Ledger, LedgerEntry};
use crate::publication::Publication;
use crate::seat_finder::SeatFinder;
use crate::silence::Silences;
use crate::view::FleetView;

/// A ledger to be written, and whose keys have to be as they were when their silence was timed.
#[derive(Debug)]
pub(crate) struct Proposal {
    pub(crate) ledger: Ledger,
    /// Registrations that are taken back, and the revision in which their keys were last written. The write compares the
    /// revisions and deletes the keys.
    pub(crate) reclaimed: Vec<(InstanceId, u64)>,
}

/// The facts that decide about the next ledger.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observer<'a> {
    pub(crate) settings: &'a FleetSettings,
    pub(crate) me: InstanceId,
    pub(crate) now: Instant,
    pub(crate) view: &'a FleetView,
    pub(crate) silences: &'a Silences,
    /// Finds the seats of the service, if this instance does (FL-13).
    pub(crate) finder: Option<&'a SeatFinder>,
}

/// The state of another instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    /// The instance writes its key.
    Present,
    /// Its key is gone, and it may still use all it has.
    Absent,
    /// The instance cannot use its grant any more.
    GrantOver,
    /// The instance cannot use its floor any more either.
    AllOver,
}

// === impl Observer ===

impl<'a> Observer<'a> {
    /// The next ledger, or nothing if the present one is right.
    pub(crate) fn propose(self) -> Option<Proposal> {
        let current = self.view.ledger()?;
        let mut ledger = Ledger::clone(current);
        ledger.take_settings(self.settings);
        if let Some(finder) = self.finder {
            finder.write_to(&mut ledger);
        }
        let reclaimed = self.reclaim(&mut ledger);
        self.take_acknowledgements(&mut ledger);
        let targets = self.targets(&ledger);
        self.lower(&mut ledger, &targets);
        raise(&mut ledger, &targets);
        self.set_floors(&mut ledger);
        (ledger != **current).then_some(Proposal { ledger, reclaimed })
    }

    /// A ledger that is written now is newer than this revision: what its readers acknowledge is at least one more.
    fn low(self) -> u64 {
        self.view.ledger_revision() + 1
    }

    fn presence(self, entry: &LedgerEntry) -> Presence {
        let silence = self.silences.of(self.now, entry.id);
        let key = self.view.live(entry.id);
        if entry.id == self.me {
            Presence::Present
        } else if key.is_none() && silence >= entry.terms.floor_reclaimed_after() {
            Presence::AllOver
        } else if silence >= entry.terms.grant_reclaimed_after() {
            if entry.floor_held == 0 { Presence::AllOver } else { Presence::GrantOver }
        } else if key.is_none() {
            Presence::Absent
        } else {
            Presence::Present
        }
    }

    /// The publication of a present instance. An entry that another version has written is left as it is.
    fn present(self, entry: &LedgerEntry) -> Option<&'a Publication> {
        let key = self.view.live(entry.id).filter(|_| self.presence(entry) == Presence::Present)?;
        key.publication.as_ref()
    }

    /// Takes back what silent instances cannot use any more (FL-10).
    fn reclaim(self, ledger: &mut Ledger) -> Vec<(InstanceId, u64)> {
        let mut reclaimed = Vec::new();
        ledger.entries.retain_mut(|entry| {
            let presence = self.presence(entry);
            let is_over = matches!(presence, Presence::GrantOver | Presence::AllOver);
            if is_over && let Some(key) = self.view.live(entry.id) {
                reclaimed.push((entry.id, key.mod_revision));
            }
            if presence == Presence::GrantOver && (entry.grant != entry.floor_held || entry.hold != entry.floor_held) {
                (entry.grant, entry.hold, entry.floor) = (entry.floor_held, entry.floor_held, entry.floor_held);
                entry.low = self.low();
            }
            presence != Presence::AllOver
        });
        reclaimed
    }

    /// Lowers what instances hold to what they have acknowledged (FL-6).
    fn take_acknowledgements(self, ledger: &mut Ledger) {
        for entry in &mut ledger.entries {
            if let Some(publication) = self.present(entry)
                && publication.ack >= entry.low
            {
                entry.hold = entry.grant.max(entry.hold.min(publication.hold));
                entry.floor_held = entry.floor;
            }
        }
    }

    /// The seats that each entry should have; nothing for those that are left as they are.
    fn targets(self, ledger: &Ledger) -> Vec<Option<u64>> {
        let taken: u64 =
            ledger.entries.iter().filter(|entry| self.present(entry).is_none()).map(LedgerEntry::seats_held).sum();
        let seats = ledger.seats.saturating_sub(taken);
        let present: Vec<Option<&Publication>> = ledger.entries.iter().map(|entry| self.present(entry)).collect();
        // An instance that drains keeps what its requests can use, and gets nothing in addition (FL-11).
        let kept = kept_by_draining(seats, &present);
        let left = seats.saturating_sub(kept.iter().flatten().sum());
        let staying = present.iter().flatten().filter(|publication| !publication.is_draining);
        let loads: Vec<&InstanceLoad> = staying.map(|publication| &*publication.load).collect();
        let mut division = divide(left, &loads).into_iter();
        let target = |(publication, kept): (Option<&Publication>, Option<u64>)| match publication {
            Some(publication) if publication.is_draining => kept,
            Some(_) => division.next(),
            None => None,
        };
        present.iter().copied().zip(kept).map(target).collect()
    }

    /// Lowers grants. What is held stays until it is acknowledged (FL-6).
    fn lower(self, ledger: &mut Ledger, targets: &[Option<u64>]) {
        for (entry, target) in ledger.entries.iter_mut().zip(targets) {
            if let Some(target) = *target
                && target < entry.grant
            {
                entry.hold = entry.hold.max(entry.grant);
                entry.grant = target;
                entry.floor = entry.floor.min(target);
                entry.low = self.low();
            }
        }
    }

    /// Keeps each floor at its share, a part of the grant (FL-9).
    fn set_floors(self, ledger: &mut Ledger) {
        let total = ledger.floor_seats();
        let share = total / (ledger.entries.len() as u64).max(1);
        let mut held: u64 = ledger.entries.iter().map(|entry| entry.floor_held).sum();
        for entry in &mut ledger.entries {
            if self.present(entry).is_none() {
                continue;
            }
            let wanted = entry.grant.min(share);
            if wanted < entry.floor {
                entry.floor = wanted;
                entry.low = self.low();
            } else {
                let possible = entry.floor_held + total.saturating_sub(held);
                entry.floor = entry.floor.max(wanted.min(possible));
                held += entry.floor.saturating_sub(entry.floor_held);
                entry.floor_held = entry.floor_held.max(entry.floor);
            }
        }
    }
}

/// For each instance that drains, its part of the division, and no more than its requests can use.
fn kept_by_draining(seats: u64, present: &[Option<&Publication>]) -> Vec<Option<u64>> {
    if !present.iter().flatten().any(|publication| publication.is_draining) {
        return vec![None; present.len()];
    }
    let loads: Vec<&InstanceLoad> = present.iter().flatten().map(|publication| &*publication.load).collect();
    let mut division = divide(seats, &loads).into_iter();
    let kept = |publication: Option<&Publication>| {
        let own = publication?;
        let part = division.next()?;
        own.is_draining.then(|| part.min(own.demand()))
    };
    present.iter().copied().map(kept).collect()
}

/// Raises grants, as far as seats are free (FL-6).
fn raise(ledger: &mut Ledger, targets: &[Option<u64>]) {
    let mut free = ledger.seats_free();
    for (entry, target) in ledger.entries.iter_mut().zip(targets) {
        let held = entry.seats_held();
        let target = target.unwrap_or(0).min(held + free);
        if target > entry.grant {
            entry.grant = target;
            entry.hold = entry.hold.max(target);
            free -= entry.seats_held() - held;
        }
    }
}
