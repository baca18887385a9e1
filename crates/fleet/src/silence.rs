//! How long other instances have been silent, by this instance's clock (FL-10).

use std::collections::BTreeMap;

use evenkeel_engine::time::{Instant, Nanos};

use crate::ledger::InstanceId;
use crate::view::FleetView;

/// For each other instance of the ledger, since when its key has not changed.
#[derive(Debug, Default)]
pub(crate) struct Silences {
    since: BTreeMap<InstanceId, Silence>,
}

#[derive(Debug, Clone, Copy)]
struct Silence {
    /// `mod_revision` of the key, 0 if it is absent.
    mod_revision: u64,
    /// When this was received first. The time at etcd would be shorter, and could not be trusted.
    since: Instant,
}

// === impl Silences ===

impl Silences {
    /// Takes note of what was received: a snapshot of this revision, or a change.
    ///
    /// An instance that is in the ledger may have a key that was not seen yet, because a watch has shown the ledger first. A key
    /// counts as absent only if a snapshot that is not older than the ledger does not show it.
    pub(crate) fn receive(&mut self, now: Instant, view: &FleetView, me: Option<InstanceId>, snapshot: Option<u64>) {
        let Some(ledger) = view.ledger() else { return };
        let shows_absence = snapshot.is_some_and(|revision| revision >= view.ledger_revision());
        self.since.retain(|id, silence| {
            ledger.entry(*id).is_some() && (silence.mod_revision == 0 || view.live(*id).is_some() || shows_absence)
        });
        for entry in ledger.entries.iter().filter(|entry| Some(entry.id) != me) {
            let mod_revision = match view.live(entry.id) {
                Some(live) => live.mod_revision,
                None if shows_absence => 0,
                None => continue,
            };
            let silence = self.since.entry(entry.id).or_insert(Silence { mod_revision, since: now });
            if silence.mod_revision != mod_revision {
                *silence = Silence { mod_revision, since: now };
            }
        }
    }

    /// For how long an instance has been silent; negative if nothing is known of it.
    pub(crate) fn of(&self, now: Instant, id: InstanceId) -> Nanos {
        self.since.get(&id).map_or(-1, |silence| now - silence.since)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use evenkeel_engine::time::SECOND;

    use super::*;
    use crate::FleetSettings;
    use crate::ledger::{Ledger, LedgerEntry, ProcessNonce};
    use crate::settings::Terms;
    use crate::view::{LedgerKey, WatchedChange};

    /// A process that was stopped after a watch had shown it a new entry, and not yet the key, once took the instance for lost.
    #[test]
    fn fl_10_a_key_that_was_not_seen_yet_is_not_absent() {
        let (id, terms) = (InstanceId(7), Terms::default());
        let mut ledger = Ledger::new(&FleetSettings::default());
        let process = ProcessNonce(1);
        ledger.entries.push(LedgerEntry { process, id, terms, grant: 9, hold: 9, floor: 0, floor_held: 0, low: 1 });
        let mut view = FleetView::default();
        let written = LedgerKey::Written { revision: 10, ledger: Arc::new(ledger) };
        view.change(WatchedChange::Ledger(written));

        let (mut silences, start) = (Silences::default(), Instant::default());
        silences.receive(start, &view, None, None);
        // An older snapshot cannot show the key.
        silences.receive(start, &view, None, Some(9));
        assert_eq!(silences.of(start + 100 * SECOND, id), -1);
        silences.receive(start, &view, None, Some(10));
        // Changes of other keys do not start the time again.
        silences.receive(start + SECOND, &view, None, None);
        assert_eq!(silences.of(start + 2 * SECOND, id), 2 * SECOND);
    }
}
