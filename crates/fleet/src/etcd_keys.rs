//! The keys of a fleet in etcd, and the transactions on them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use evenkeel_store::{
    CoordinationKey, EtcdConfig, EtcdTransactions, KeyChange, KeyCondition, KeyWatch, KeyWrite, LeaseId, Transacted,
};

use crate::call::{LedgerWrite, Operation, Reply};
use crate::encoding::{decode_ledger, decode_publication, encode_ledger, encode_publication};
use crate::ledger::InstanceId;
use crate::settings::Terms;
use crate::view::{LedgerKey, LiveKey, Snapshot, WatchedChange};

/// Below this prefix is a folder for each service (FL-2).
const PREFIX: &str = "/evenkeel/fleet";
const LEDGER: &str = "ledger";
const LIVE: &str = "live/";

/// A lease lasts for this many ttls: it only collects garbage (FL-1).
const LEASE_TTLS: u32 = 20;

/// The keys of one service.
#[derive(Debug)]
pub(crate) struct FleetKeys {
    etcd: EtcdTransactions,
    lease_lasts: Duration,
    unreadable: Arc<UnreadableKeys>,
}

/// The keys whose values this version cannot read. Each is logged once, although it is read every second (FL-2).
#[derive(Debug, Default)]
struct UnreadableKeys {
    names: Mutex<BTreeSet<String>>,
}

/// The outcome of a call.
#[derive(Debug)]
pub(crate) struct Called {
    pub(crate) reply: Reply,
    /// The lease of a registration.
    pub(crate) lease: Option<LeaseId>,
}

// === impl FleetKeys ===

impl FleetKeys {
    pub(crate) fn new(service: &str, etcd: &EtcdConfig, terms: Terms) -> Result<Self, evenkeel_store::Error> {
        let config = EtcdConfig { prefix: format!("{PREFIX}/{service}"), ..etcd.clone() };
        let lease_lasts = Duration::from_millis(terms.ttl_ms.into()) * LEASE_TTLS;
        Ok(Self { etcd: EtcdTransactions::new(&config)?, lease_lasts, unreadable: Arc::default() })
    }

    /// How often a lease is kept alive.
    pub(crate) fn keep_alive_period(&self) -> Duration {
        self.lease_lasts / 4
    }

    /// Carries out a member's operation.
    pub(crate) async fn call(&self, operation: Operation) -> Result<Called, evenkeel_store::Error> {
        let mut lease = None;
        let (conditions, writes) = match operation {
            Operation::Read => (Vec::new(), Vec::new()),
            Operation::Register { id, publication, write, replaced } => {
                let granted = self.etcd.grant_lease(self.lease_lasts).await?;
                lease = Some(granted);
                let conditions = vec![compare_ledger(&write), KeyCondition::Created(live(id), 0)];
                let mut writes = vec![
                    KeyWrite::PutWithLease(live(id), encode_publication(&publication), granted),
                    put_ledger(&write),
                ];
                writes.extend(replaced.map(|id| KeyWrite::Delete(live(id))));
                (conditions, writes)
            }
            Operation::Publish { id, create_revision, publication } => {
                let value = encode_publication(&publication);
                (vec![owns(id, create_revision)], vec![KeyWrite::PutKeepingLease(live(id), value)])
            }
            Operation::Propose { id, create_revision, write, reclaimed } => {
                let mut conditions = vec![compare_ledger(&write), owns(id, create_revision)];
                let timed = |(id, revision): &(InstanceId, u64)| KeyCondition::Written(live(*id), *revision);
                conditions.extend(reclaimed.iter().map(timed));
                let mut writes = vec![put_ledger(&write)];
                writes.extend(reclaimed.iter().map(|(id, _)| KeyWrite::Delete(live(*id))));
                (conditions, writes)
            }
            Operation::Leave { id, create_revision, write } => (
                vec![compare_ledger(&write), owns(id, create_revision)],
                vec![put_ledger(&write), KeyWrite::Delete(live(id))],
            ),
        };
        let transacted = self.etcd.transact(&conditions, writes).await?;
        Ok(Called { lease: lease.filter(|_| transacted.is_written), reply: self.reply(transacted) })
    }

    pub(crate) async fn keep_alive(&self, lease: LeaseId) -> Result<bool, evenkeel_store::Error> {
        self.etcd.keep_alive(lease).await
    }

    pub(crate) async fn watch(&self) -> Result<FleetWatch, evenkeel_store::Error> {
        Ok(FleetWatch { watch: self.etcd.watch().await?, unreadable: Arc::clone(&self.unreadable) })
    }

    fn reply(&self, transacted: Transacted) -> Reply {
        self.unreadable.retain(&transacted.keys);
        let mut snapshot = Snapshot { revision: transacted.revision, ledger: LedgerKey::Absent, live: Vec::new() };
        for key in transacted.keys {
            match self.unreadable.read(key) {
                Some(WatchedChange::Ledger(ledger)) => snapshot.ledger = ledger,
                Some(WatchedChange::Live(live)) => snapshot.live.push(live),
                Some(WatchedChange::Deleted { .. }) | None => {}
            }
        }
        Reply { is_written: transacted.is_written, snapshot }
    }
}

fn live(id: InstanceId) -> String {
    format!("{LIVE}{:016x}", id.0)
}

fn compare_ledger(write: &LedgerWrite) -> KeyCondition {
    KeyCondition::Written(LEDGER.to_owned(), write.compared)
}

fn put_ledger(write: &LedgerWrite) -> KeyWrite {
    KeyWrite::Put(LEDGER.to_owned(), encode_ledger(&write.ledger))
}

fn owns(id: InstanceId, create_revision: u64) -> KeyCondition {
    KeyCondition::Created(live(id), create_revision)
}

fn id_of(name: &str) -> Option<InstanceId> {
    u64::from_str_radix(name.strip_prefix(LIVE)?, 16).ok().map(InstanceId)
}

// === impl UnreadableKeys ===

impl UnreadableKeys {
    /// The change that a key stands for; `None` if it is not a key of the fleet. A value that cannot be read is logged once.
    fn read(&self, key: CoordinationKey) -> Option<WatchedChange> {
        let CoordinationKey { name, create_revision, mod_revision, value, .. } = key;
        if name == LEDGER {
            let ledger = decode_ledger(&value);
            if self.is_news(&name, ledger.is_ok())
                && let Err(error) = &ledger
            {
                tracing::warn!(%error, "cannot read the ledger of the fleet; this instance writes nothing, and its grant ends");
            }
            return Some(WatchedChange::Ledger(match ledger {
                Ok(ledger) => LedgerKey::Written { revision: mod_revision, ledger: Arc::new(ledger) },
                Err(_) => LedgerKey::Unreadable { revision: mod_revision },
            }));
        }
        let id = id_of(&name)?;
        let publication = decode_publication(&value);
        if self.is_news(&name, publication.is_ok())
            && let Err(error) = &publication
        {
            tracing::warn!(%error, key = name, "cannot read what an instance of the fleet publishes");
        }
        Some(WatchedChange::Live(LiveKey { id, create_revision, mod_revision, publication: publication.ok() }))
    }

    /// Whether a key cannot be read that could be read before, or was not there.
    fn is_news(&self, name: &str, is_readable: bool) -> bool {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if is_readable {
            names.remove(name);
            return false;
        }
        names.insert(name.to_owned())
    }

    /// Keys that are gone are forgotten.
    fn retain(&self, present: &[CoordinationKey]) {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.retain(|name| present.iter().any(|key| key.name == *name));
    }
}

/// A watch of the fleet's keys.
#[derive(Debug)]
pub(crate) struct FleetWatch {
    watch: KeyWatch,
    unreadable: Arc<UnreadableKeys>,
}

// === impl FleetWatch ===

impl FleetWatch {
    pub(crate) async fn next(&mut self) -> Result<Vec<WatchedChange>, evenkeel_store::Error> {
        let changes = self.watch.next().await?;
        let read = |change: KeyChange| match change {
            KeyChange::Written(key) => self.unreadable.read(key),
            KeyChange::Deleted { name, revision } => id_of(&name).map(|id| WatchedChange::Deleted { id, revision }),
            _ => None,
        };
        Ok(changes.into_iter().filter_map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_2_a_value_that_cannot_be_read_is_told_of_once() {
        let unreadable = UnreadableKeys::default();
        assert!(unreadable.is_news(LEDGER, false));
        assert!(!unreadable.is_news(LEDGER, false), "it is read every second");
        assert!(!unreadable.is_news(LEDGER, true));
        assert!(unreadable.is_news(LEDGER, false), "it was readable meanwhile");
        // A key that is gone takes no memory.
        unreadable.retain(&[]);
        assert!(unreadable.names.lock().unwrap().is_empty());
    }
}
