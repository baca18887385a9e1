//! An etcd: linearisable transactions, and leases that are revoked early, prolonged, or answer although their key is gone.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_fleet::{InstanceId, Ledger, LedgerKey, LedgerWrite, LiveKey, Operation, Reply, Snapshot, WatchedChange};

use super::Time;

#[derive(Debug, Default)]
pub(crate) struct Etcd {
    revision: u64,
    pub(crate) ledger: Option<(u64, Arc<Ledger>)>,
    live: BTreeMap<InstanceId, LiveKey>,
    leases: Vec<Lease>,
    pub(crate) is_comparing: bool,
    pub(crate) is_deleting_reclaimed: bool,
    /// How often instances have written their keys, and ledgers were written or not.
    pub(crate) publications: u64,
    pub(crate) ledger_writes: u64,
    pub(crate) conflicts: u64,
}

/// A lease holds one key.
#[derive(Debug)]
struct Lease {
    id: InstanceId,
    ttl: Time,
    expires: Time,
}

/// A reply, and what watches see of it.
pub(crate) type Done = (Reply, Vec<WatchedChange>);

// === impl Etcd ===

impl Etcd {
    pub(crate) fn new() -> Self {
        Self { revision: 1, is_comparing: true, is_deleting_reclaimed: true, ..Self::default() }
    }

    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref().map(|(_, ledger)| &**ledger)
    }

    pub(crate) fn apply(&mut self, now: Time, operation: Operation, lease_ttl: Time) -> Done {
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
                    self.publications += 1;
                }
                is_written
            }
            Operation::Propose { id, create_revision, write, reclaimed } => {
                let is_as_timed = |(id, revision): &(InstanceId, u64)| {
                    self.live.get(id).is_some_and(|key| key.mod_revision == *revision)
                };
                let is_written = self.may_write(&write)
                    && self.has_key(id, create_revision)
                    && (!self.is_deleting_reclaimed || reclaimed.iter().all(is_as_timed));
                if is_written {
                    self.revision += 1;
                    if self.is_deleting_reclaimed {
                        changes.extend(reclaimed.into_iter().filter_map(|(id, _)| self.delete(id)));
                    }
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
        self.conflicts += u64::from(!is_written);
        (Reply { is_written, snapshot: self.snapshot() }, changes)
    }

    /// Whether the lease is kept alive: it knows nothing of the key.
    pub(crate) fn keep_alive(&mut self, now: Time, id: InstanceId) -> bool {
        let lease = self.leases.iter_mut().find(|lease| lease.id == id && lease.expires > now);
        lease.is_some_and(|lease| {
            lease.expires = now + lease.ttl;
            true
        })
    }

    /// A new leader starts all leases anew.
    pub(crate) fn restart_leases(&mut self, now: Time) {
        self.leases.iter_mut().for_each(|lease| lease.expires = now + lease.ttl);
    }

    /// Ends the lease of an instance early.
    pub(crate) fn revoke(&mut self, id: InstanceId) -> Vec<WatchedChange> {
        self.leases.retain(|lease| lease.id != id);
        self.lose_key(id)
    }

    /// Deletes a key while its lease goes on.
    pub(crate) fn lose_key(&mut self, id: InstanceId) -> Vec<WatchedChange> {
        self.revision += 1;
        self.delete(id).into_iter().collect()
    }

    pub(crate) fn ids(&self) -> Vec<InstanceId> {
        self.live.keys().copied().collect()
    }

    fn expire(&mut self, now: Time) -> Vec<WatchedChange> {
        let expired: Vec<InstanceId> =
            self.leases.iter().filter(|lease| lease.expires <= now).map(|lease| lease.id).collect();
        expired.into_iter().flat_map(|id| self.revoke(id)).collect()
    }

    fn may_write(&self, write: &LedgerWrite) -> bool {
        !self.is_comparing || write.compared == self.ledger.as_ref().map_or(0, |(revision, _)| *revision)
    }

    fn has_key(&self, id: InstanceId, create_revision: u64) -> bool {
        self.live.get(&id).is_some_and(|key| key.create_revision == create_revision)
    }

    fn delete(&mut self, id: InstanceId) -> Option<WatchedChange> {
        self.live.remove(&id).map(|_| WatchedChange::Deleted { id, revision: self.revision })
    }

    fn write_ledger(&mut self, ledger: Ledger) -> WatchedChange {
        self.ledger_writes += 1;
        self.ledger = Some((self.revision, Arc::new(ledger)));
        WatchedChange::Ledger(self.ledger_key())
    }

    fn ledger_key(&self) -> LedgerKey {
        self.ledger.as_ref().map_or(LedgerKey::Absent, |(revision, ledger)| LedgerKey::Written {
            revision: *revision,
            ledger: ledger.clone(),
        })
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { revision: self.revision, ledger: self.ledger_key(), live: self.live.values().cloned().collect() }
    }
}
