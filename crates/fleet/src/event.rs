//! `MemberEvent`: events of an instance of a fleet, for logs and metrics (FL-14).

use std::fmt;

use evenkeel_engine::time::Nanos;

use crate::allowance::Footing;
use crate::ledger::{InstanceId, Ledger, LedgerEntry, ProcessNonce};

/// An event of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemberEvent {
    /// The instance is registered.
    Registered {
        /// Its registration.
        id: InstanceId,
    },
    /// Its key or its ledger entry is gone: it starts on its floor only until it is registered again.
    RegistrationLost,
    /// Its grant has changed.
    Granted {
        /// The seats that it has now.
        seats: u64,
        /// The seats that it had before.
        before: u64,
    },
    /// Another instance has joined.
    Joined {
        /// Its registration.
        id: InstanceId,
        /// How many there are now.
        instances: usize,
    },
    /// Another instance has left, or the last seats of a lost one were taken back.
    Left {
        /// Its registration.
        id: InstanceId,
        /// How many there are now.
        instances: usize,
    },
    /// Another instance was silent for too long: others have its grant, less its floor.
    Reclaimed {
        /// Its registration.
        id: InstanceId,
        /// The seats that were taken back.
        seats: u64,
    },
    /// The settings of the fleet have changed.
    SettingsChanged {
        /// The generation of the settings.
        generation: u64,
        /// The seats of the service.
        seats: u64,
        /// The seats that it had before.
        before: u64,
    },
    /// An instance has found out that the service should have another number of seats, or tries one (FL-13).
    SeatsFound {
        /// The seats of the service.
        seats: u64,
        /// The seats that it had before.
        before: u64,
    },
    /// What this instance lives on has changed. The state machine does not tell of it: it knows no time between events.
    FootingChanged {
        /// What the seats come from now.
        footing: Footing,
        /// The seats that it may use.
        seats: u64,
    },
    /// Another instance has written the ledger first.
    Conflict,
    /// etcd has not answered in time.
    CallFailed,
}

// === impl MemberEvent ===

impl fmt::Display for MemberEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registered { id } => write!(f, "this instance is registered in the fleet as {:016x}", id.0),
            Self::RegistrationLost => f.write_str(
                "this instance has lost its registration in the fleet: it uses its floor only until it is registered again",
            ),
            Self::Granted { seats, before } if seats > before => {
                write!(f, "the fleet grants this instance {seats} seats, {} more than before", seats - before)
            }
            Self::Granted { seats, before } => {
                write!(f, "the fleet grants this instance {seats} seats, {} fewer than before", before - seats)
            }
            Self::Joined { id, instances } => {
                write!(f, "instance {:016x} has joined the fleet: {instances} instances", id.0)
            }
            Self::Left { id, instances } => write!(f, "instance {:016x} has left the fleet: {instances} instances", id.0),
            Self::Reclaimed { id, seats } => {
                write!(f, "instance {:016x} of the fleet was silent for too long: {seats} of its seats are taken back", id.0)
            }
            Self::SettingsChanged { generation, seats, before } => {
                write!(f, "settings of generation {generation} are in effect: {seats} seats, {before} before")
            }
            Self::SeatsFound { seats, before } => {
                write!(f, "the fleet shares {seats} seats from now on, {before} before")
            }
            Self::FootingChanged { footing: Footing::Grant, seats } => {
                write!(f, "etcd has confirmed the grant of this instance: {seats} seats")
            }
            Self::FootingChanged { footing: Footing::Floor, seats } => {
                write!(f, "etcd has not confirmed the grant of this instance in time: {seats} seats of its floor are left")
            }
            Self::FootingChanged { footing: Footing::Nothing, .. } => {
                f.write_str("etcd has not answered for too long: this instance starts no requests")
            }
            Self::Conflict => f.write_str("another instance of the fleet has written the ledger first"),
            Self::CallFailed => f.write_str("etcd has not answered the fleet in time"),
        }
    }
}

/// The events of other instances that follow from a newer ledger. `silence_of` is how long this one has seen nothing of another.
pub(crate) fn changes_of_others(
    before: &Ledger,
    after: &Ledger,
    own: ProcessNonce,
    silence_of: impl Fn(InstanceId) -> Nanos,
) -> Vec<MemberEvent> {
    let instances = after.entries.len();
    let mut events = Vec::new();
    if (before.generation, before.seats) != (after.generation, after.seats) {
        let is_found = before.generation == after.generation && after.auto.is_some();
        let (generation, seats, before) = (after.generation, after.seats, before.seats);
        events.push(if is_found {
            MemberEvent::SeatsFound { seats, before }
        } else {
            MemberEvent::SettingsChanged { generation, seats, before }
        });
    }
    let others = |ledger: &Ledger| -> Vec<LedgerEntry> {
        ledger.entries.iter().filter(|entry| entry.process != own).cloned().collect()
    };
    for entry in others(after) {
        match before.entry_of(entry.process) {
            None => events.push(MemberEvent::Joined { id: entry.id, instances }),
            Some(old) => {
                let has_floor_only = entry.grant == entry.floor_held && entry.hold == entry.floor_held;
                let taken = old.seats_held().saturating_sub(entry.seats_held());
                let is_silent = silence_of(entry.id) >= entry.terms.grant_reclaimed_after() / 2;
                if has_floor_only && taken > 0 && is_silent {
                    events.push(MemberEvent::Reclaimed { id: entry.id, seats: taken });
                }
            }
        }
    }
    let is_gone = |entry: &LedgerEntry| after.entry_of(entry.process).is_none();
    events
        .extend(others(before).into_iter().filter(is_gone).map(|entry| MemberEvent::Left { id: entry.id, instances }));
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FleetSettings;
    use crate::settings::Terms;

    fn entry(number: u64, grant: u64, floor: u64) -> LedgerEntry {
        let (process, id) = (ProcessNonce(number), InstanceId(number));
        let terms = Terms::default();
        LedgerEntry { process, id, terms, grant, hold: grant, floor, floor_held: floor, low: 1 }
    }

    #[test]
    fn fl_14_every_change_of_the_fleet_is_an_event() {
        let ledger =
            |entries: &[LedgerEntry]| Ledger { entries: entries.to_vec(), ..Ledger::new(&FleetSettings::default()) };
        let before = ledger(&[entry(1, 100, 50), entry(2, 200, 100), entry(3, 300, 100)]);
        let mut after = ledger(&[entry(1, 300, 50), entry(2, 100, 100), entry(4, 0, 0)]);
        (after.generation, after.seats) = (1, 500);
        let silence = Terms::default().grant_reclaimed_after();
        let told = changes_of_others(&before, &after, ProcessNonce(1), |id| if id.0 == 2 { silence } else { 0 });
        let told: Vec<String> = told.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "settings of generation 1 are in effect: 500 seats, 600 before",
                "instance 0000000000000002 of the fleet was silent for too long: 100 of its seats are taken back",
                "instance 0000000000000004 has joined the fleet: 3 instances",
                "instance 0000000000000003 has left the fleet: 3 instances",
            ]
        );
        // A living instance gives seats back as well, which is not an event.
        assert!(changes_of_others(&after, &after, ProcessNonce(1), |_| silence).is_empty());
        let lower = ledger(&[entry(1, 100, 50), entry(2, 100, 100), entry(3, 300, 100)]);
        assert!(changes_of_others(&before, &lower, ProcessNonce(1), |_| 0).is_empty());
    }
}
