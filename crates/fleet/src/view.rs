//! `FleetView`: the newest state of the fleet's keys in etcd, from responses and watches together.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ledger::{InstanceId, Ledger};
use crate::publication::Publication;

/// All keys of a fleet at one revision of etcd.
///
/// Not `#[non_exhaustive]`: the driver makes it.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The revision that it shows.
    pub revision: u64,
    /// The ledger.
    pub ledger: LedgerKey,
    /// The keys of instances.
    pub live: Vec<LiveKey>,
}

/// The key of the ledger.
///
/// Not `#[non_exhaustive]`: the driver makes it.
#[derive(Debug, Clone)]
pub enum LedgerKey {
    /// There is no ledger yet.
    Absent,
    /// The ledger, and the revision in which it was written.
    Written {
        /// `mod_revision` of the key.
        revision: u64,
        /// Its value.
        ledger: Arc<Ledger>,
    },
    /// A ledger that this version cannot read. It is left alone (FL-2).
    Unreadable {
        /// `mod_revision` of the key.
        revision: u64,
    },
}

/// The key of an instance.
///
/// Not `#[non_exhaustive]`: the driver makes it.
#[derive(Debug, Clone)]
pub struct LiveKey {
    /// The instance's registration.
    pub id: InstanceId,
    /// The revision in which the key was created.
    pub create_revision: u64,
    /// The revision in which it was last written.
    pub mod_revision: u64,
    /// Its value, if this version can read it.
    pub publication: Option<Publication>,
}

/// A change that a watch reports.
///
/// Not `#[non_exhaustive]`: the driver makes it.
#[derive(Debug, Clone)]
pub enum WatchedChange {
    /// The ledger was written.
    Ledger(LedgerKey),
    /// An instance has written its key.
    Live(LiveKey),
    /// An instance's key was deleted.
    Deleted {
        /// The instance's registration.
        id: InstanceId,
        /// The revision of the deletion.
        revision: u64,
    },
}

/// The newest known state of each key.
#[derive(Debug, Default)]
pub(crate) struct FleetView {
    /// The newest ledger that this version can read, and its revision.
    ledger: Option<(u64, Arc<Ledger>)>,
    /// The revision of the newest ledger, which this version may not be able to read.
    newest_revision: u64,
    live: BTreeMap<InstanceId, LiveKey>,
}

// === impl FleetView ===

impl FleetView {
    /// The newest ledger that this version can read.
    pub(crate) fn ledger(&self) -> Option<&Arc<Ledger>> {
        self.ledger.as_ref().map(|(_, ledger)| ledger)
    }

    /// The revision of that ledger, 0 if there is none.
    pub(crate) fn ledger_revision(&self) -> u64 {
        self.ledger.as_ref().map_or(0, |(revision, _)| *revision)
    }

    /// Whether that is the newest ledger. If it is not, nothing may be written: what is granted ends in its time (FL-2).
    pub(crate) fn is_readable(&self) -> bool {
        self.newest_revision == self.ledger_revision()
    }

    pub(crate) fn live(&self, id: InstanceId) -> Option<&LiveKey> {
        self.live.get(&id)
    }

    pub(crate) fn publications(&self) -> impl Iterator<Item = &Publication> {
        self.live.values().filter_map(|live| live.publication.as_ref())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = InstanceId> {
        self.live.keys().copied()
    }

    /// Takes over what a response shows. Keys that a watch has shown newer stay as they are.
    pub(crate) fn merge(&mut self, snapshot: Snapshot) {
        self.merge_ledger(snapshot.ledger);
        let shown: BTreeMap<InstanceId, LiveKey> = snapshot.live.into_iter().map(|live| (live.id, live)).collect();
        self.live.retain(|id, known| known.mod_revision > snapshot.revision || shown.contains_key(id));
        for live in shown.into_values() {
            self.merge_live(live);
        }
    }

    /// Takes over what a watch reports, unless something newer is known.
    pub(crate) fn change(&mut self, change: WatchedChange) {
        match change {
            WatchedChange::Ledger(ledger) => self.merge_ledger(ledger),
            WatchedChange::Live(live) => self.merge_live(live),
            WatchedChange::Deleted { id, revision } => {
                if self.live.get(&id).is_some_and(|known| known.mod_revision < revision) {
                    self.live.remove(&id);
                }
            }
        }
    }

    /// An instance applies only ledgers newer than the one it has (FL-6).
    fn merge_ledger(&mut self, key: LedgerKey) {
        let (revision, ledger) = match key {
            LedgerKey::Absent => return,
            LedgerKey::Written { revision, ledger } => (revision, Some(ledger)),
            LedgerKey::Unreadable { revision } => (revision, None),
        };
        if revision > self.newest_revision {
            self.newest_revision = revision;
            self.ledger = ledger.map(|ledger| (revision, ledger)).or(self.ledger.take());
        }
    }

    /// A key that was deleted may be back by an old event of a watch; the next read removes it again.
    fn merge_live(&mut self, live: LiveKey) {
        if self.live.get(&live.id).is_none_or(|known| known.mod_revision < live.mod_revision) {
            self.live.insert(live.id, live);
        }
    }
}
