//! A simulated etcd: linearisable transactions, and leases that are revoked early, prolonged, or answer although their key is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_engine::time::{Instant, Nanos};

use crate::FleetSettings;
use crate::call::{LedgerWrite, Operation, Reply};
use crate::ledger::{InstanceId, Ledger};
use crate::view::{LedgerKey, LiveKey, Snapshot, WatchedChange};

/// The keys of one fleet in an etcd that exists in a simulation only. Time is an argument.
///
/// [`apply`](Self::apply) carries out a member's operation. The caller decides about leases.
#[derive(Debug)]
pub struct SimulatedEtcd {
    revision: u64,
    ledger: Option<(u64, Arc<Ledger>)>,
    /// Whether another version has written the ledger.
    is_ledger_foreign: bool,
    live: BTreeMap<InstanceId, LiveKey>,
    leases: Vec<Lease>,
    counts: EtcdCounts,
}

/// How often a simulated etcd was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EtcdCounts {
    /// Instances have written their keys.
    pub publications: u64,
    /// The ledger was written.
    pub ledger_writes: u64,
    /// A comparison failed, and nothing was written.
    pub conflicts: u64,
}

/// A lease holds one key.
#[derive(Debug)]
struct Lease {
    id: InstanceId,
    ttl: Nanos,
    expires: Instant,
}

// === impl EtcdCounts ===

impl EtcdCounts {
    /// What was counted since then.
    #[must_use]
    pub fn since(self, before: Self) -> Self {
        Self {
            publications: self.publications - before.publications,
            ledger_writes: self.ledger_writes - before.ledger_writes,
            conflicts: self.conflicts - before.conflicts,
        }
    }
}

// === impl SimulatedEtcd ===

impl SimulatedEtcd {
    /// An etcd without keys.
    pub fn new() -> Self {
        Self {
            revision: 1,
            ledger: None,
            is_ledger_foreign: false,
            live: BTreeMap::new(),
            leases: Vec::new(),
            counts: EtcdCounts::default(),
        }
    }

    /// The present ledger.
    pub fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref().map(|(_, ledger)| &**ledger)
    }

    /// The revision in which the ledger was written, 0 if there is none.
    pub fn ledger_revision(&self) -> u64 {
        self.ledger.as_ref().map_or(0, |(revision, _)| *revision)
    }

    /// How often it was written.
    pub fn counts(&self) -> EtcdCounts {
        self.counts
    }

    /// Carries out a member's operation. Returns the reply, and the changes that watches see.
    pub fn apply(&mut self, now: Instant, operation: Operation, lease_ttl: Nanos) -> (Reply, Vec<WatchedChange>) {
        let mut changes = self.expire(now);
        let is_written = match operation {
            Operation::Read => true,
            Operation::Register { id, publication, write, replaced } => {
                let is_written = self.may_write(&write) && !self.live.contains_key(&id);
                if is_written {
                    self.revision += 1;
                    let (create_revision, mod_revision) = (self.revision, self.revision);
                    let key = LiveKey { id, create_revision, mod_revision, publication: Some(publication) };
                    self.leases.push(Lease { id, ttl: lease_ttl, expires: now + lease_ttl });
                    self.live.insert(id, key.clone());
                    changes.push(WatchedChange::Live(key));
                    changes.extend(replaced.and_then(|id| self.delete(id)));
                    changes.push(self.write_ledger(write.ledger));
                }
                is_written
            }
            Operation::Publish { id, create_revision, publication } => {
                let revision = self.revision + 1;
                let key = self.live.get_mut(&id).filter(|key| key.create_revision == create_revision);
                let is_written = key.is_some();
                if let Some(key) = key {
                    self.revision = revision;
                    (key.mod_revision, key.publication) = (revision, Some(publication));
                    changes.push(WatchedChange::Live(key.clone()));
                    self.counts.publications += 1;
                }
                is_written
            }
            Operation::Propose { id, create_revision, write, reclaimed } => {
                let is_as_timed = |(id, revision): &(InstanceId, u64)| {
                    self.live.get(id).is_some_and(|key| key.mod_revision == *revision)
                };
                let is_written =
                    self.may_write(&write) && self.has_key(id, create_revision) && reclaimed.iter().all(is_as_timed);
                if is_written {
                    self.revision += 1;
                    changes.extend(reclaimed.into_iter().filter_map(|(id, _)| self.delete(id)));
                    changes.push(self.write_ledger(write.ledger));
                }
                is_written
            }
            Operation::Leave { id, create_revision, write } => {
                let is_written = self.may_write(&write) && self.has_key(id, create_revision);
                if is_written {
                    self.revision += 1;
                    changes.extend(self.delete(id));
                    changes.push(self.write_ledger(write.ledger));
                }
                is_written
            }
        };
        self.counts.conflicts += u64::from(!is_written);
        (Reply { is_written, snapshot: self.snapshot() }, changes)
    }

    /// Keeps the lease of an instance alive, and returns whether there is one. The lease knows nothing of the key.
    pub fn keep_alive(&mut self, now: Instant, id: InstanceId) -> bool {
        let lease = self.leases.iter_mut().find(|lease| lease.id == id && lease.expires > now);
        lease.is_some_and(|lease| {
            lease.expires = now + lease.ttl;
            true
        })
    }

    /// A new leader starts all leases anew.
    pub fn restart_leases(&mut self, now: Instant) {
        self.leases.iter_mut().for_each(|lease| lease.expires = now + lease.ttl);
    }

    /// Ends the lease of an instance early.
    pub fn revoke(&mut self, id: InstanceId) -> Vec<WatchedChange> {
        self.leases.retain(|lease| lease.id != id);
        self.lose_key(id)
    }

    /// Deletes a key while its lease goes on.
    pub fn lose_key(&mut self, id: InstanceId) -> Vec<WatchedChange> {
        self.revision += 1;
        self.delete(id).into_iter().collect()
    }

    /// Another version of the format writes the ledger (FL-2).
    pub fn write_foreign_ledger(&mut self) -> Vec<WatchedChange> {
        self.revision += 1;
        self.is_ledger_foreign = true;
        let ledger =
            self.ledger.take().map_or_else(|| Arc::new(Ledger::new(&FleetSettings::default())), |(_, ledger)| ledger);
        self.ledger = Some((self.revision, ledger));
        vec![WatchedChange::Ledger(self.ledger_key())]
    }

    /// The instances that have a key.
    pub fn ids(&self) -> Vec<InstanceId> {
        self.live.keys().copied().collect()
    }

    fn expire(&mut self, now: Instant) -> Vec<WatchedChange> {
        let expired: Vec<InstanceId> =
            self.leases.iter().filter(|lease| lease.expires <= now).map(|lease| lease.id).collect();
        expired.into_iter().flat_map(|id| self.revoke(id)).collect()
    }

    fn may_write(&self, write: &LedgerWrite) -> bool {
        write.compared == self.ledger_revision()
    }

    fn has_key(&self, id: InstanceId, create_revision: u64) -> bool {
        self.live.get(&id).is_some_and(|key| key.create_revision == create_revision)
    }

    fn delete(&mut self, id: InstanceId) -> Option<WatchedChange> {
        self.live.remove(&id).map(|_| WatchedChange::Deleted { id, revision: self.revision })
    }

    fn write_ledger(&mut self, ledger: Ledger) -> WatchedChange {
        self.counts.ledger_writes += 1;
        (self.ledger, self.is_ledger_foreign) = (Some((self.revision, Arc::new(ledger))), false);
        WatchedChange::Ledger(self.ledger_key())
    }

    fn ledger_key(&self) -> LedgerKey {
        match &self.ledger {
            None => LedgerKey::Absent,
            Some((revision, _)) if self.is_ledger_foreign => LedgerKey::Unreadable { revision: *revision },
            Some((revision, ledger)) => LedgerKey::Written { revision: *revision, ledger: ledger.clone() },
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { revision: self.revision, ledger: self.ledger_key(), live: self.live.values().cloned().collect() }
    }
}

impl Default for SimulatedEtcd {
    fn default() -> Self {
        Self::new()
    }
}
