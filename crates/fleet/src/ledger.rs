//! The ledger: who may use how many seats of the service. All instances read it, and any of them may write the next one.

use serde::{Deserialize, Serialize};

use crate::FleetSettings;
use crate::found_seats::FoundSeats;
use crate::settings::Terms;

/// The format of ledgers and publications that this version reads and writes.
pub const FORMAT_VERSION: u32 = 1;

/// An instance's registration: random, new for every registration, never used again (FL-2).
///
/// Not `#[non_exhaustive]`: it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InstanceId(pub u64);

/// A process: random, new for every start. An instance that has lost its registration finds its ledger entry by it.
///
/// Not `#[non_exhaustive]`: it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessNonce(pub u64);

/// Who may use how many seats of the service.
///
/// Not `#[non_exhaustive]`: tests of the protocol make it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ledger {
    /// [`FORMAT_VERSION`].
    pub version: u32,
    /// The generation of the settings below.
    pub generation: u64,
    /// How many seats the service has.
    pub seats: u64,
    /// Where that number comes from, if an instance finds it out (FL-13).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<FoundSeats>,
    /// The part of them that outlives a cut from etcd, in percent.
    pub floor_percent: u64,
    /// One for each instance.
    pub entries: Vec<LedgerEntry>,
}

/// The seats that one instance may use.
///
/// Not `#[non_exhaustive]`: tests of the protocol make it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerEntry {
    /// The process.
    pub process: ProcessNonce,
    /// Its registration.
    pub id: InstanceId,
    /// For how long it may use what it has.
    pub terms: Terms,
    /// The seats that it may use while it is connected.
    pub grant: u64,
    /// The seats that it may still use, because it has not acknowledged that its grant is lower.
    pub hold: u64,
    /// The part of the grant that it may use when it is cut off from etcd (FL-9).
    pub floor: u64,
    /// The floor that it may still use, because it has not acknowledged that it is lower.
    pub floor_held: u64,
    /// An acknowledgement counts if the instance has seen a ledger of this revision or a newer one (FL-6).
    pub low: u64,
}

// === impl Ledger ===

impl Ledger {
    /// A ledger without entries.
    pub(crate) fn new(settings: &FleetSettings) -> Self {
        Self {
            version: FORMAT_VERSION,
            generation: settings.generation,
            seats: settings.seats,
            auto: settings.auto,
            floor_percent: settings.floor_percent,
            entries: Vec::new(),
        }
    }

    /// Takes over settings of a higher generation.
    pub(crate) fn take_settings(&mut self, settings: &FleetSettings) {
        if settings.generation > self.generation {
            self.generation = settings.generation;
            // What was found is not forgotten when other bounds are set.
            let found = self.auto.and_then(|found| found.as_learnt());
            self.auto = settings.auto.map(|auto| auto.learnt(found.or(auto.as_learnt())));
            self.seats = self.auto.map_or(settings.seats, |auto| auto.limit_seats().into());
            self.floor_percent = settings.floor_percent;
        }
    }

    /// The seats that instances may use or still hold, all together. A write keeps it at or below the seats, and never raises it
    /// above them (FL-6).
    pub fn seats_held(&self) -> u64 {
        self.entries.iter().map(LedgerEntry::seats_held).sum()
    }

    /// The seats that nobody holds.
    pub(crate) fn seats_free(&self) -> u64 {
        self.seats.saturating_sub(self.seats_held())
    }

    /// All floors together, at most (FL-9).
    pub(crate) fn floor_seats(&self) -> u64 {
        u64::try_from(u128::from(self.seats) * u128::from(self.floor_percent.min(100)) / 100).unwrap_or(self.seats)
    }

    /// The entry of a registration.
    pub fn entry(&self, id: InstanceId) -> Option<&LedgerEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }

    /// The entry of a process, whatever its registration.
    pub fn entry_of(&self, process: ProcessNonce) -> Option<&LedgerEntry> {
        self.entries.iter().find(|entry| entry.process == process)
    }
}

// === impl LedgerEntry ===

impl LedgerEntry {
    /// The seats that the instance may use or still holds.
    pub fn seats_held(&self) -> u64 {
        self.hold.max(self.grant).max(self.floor_held)
    }
}
