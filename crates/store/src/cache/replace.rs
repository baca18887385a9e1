//! Resuming a cache whose feeder has missed writes that are lost.
//!
//! etcd forgets its history when it is compacted. A feeder that was disconnected until etcd had forgotten the revision where
//! the feeder stopped lists all objects again and works out the differences. Watchers get the differences, so that each of
//! them still ends up with the true state. But the writes in between are not known one by one, so that no list and no new
//! watch may refer to a revision in the gap.

use std::sync::Arc;

use evenkeel_api::Kind;

use crate::Object;

use super::{Cache, CacheState, ObjectMap, Write};

// === impl Cache ===

impl Cache {
    /// Replaces all objects by those of a later revision, and puts what differs into the history.
    ///
    /// The revision can also be an earlier one, after the store was restored from an old backup. Then what
    /// is in the history never happened, and all watchers have to begin anew. The same is true if the backup has been
    /// written to until its revision was the later one.
    pub(crate) fn replace(&self, kinds: [ObjectMap; Kind::ALL.len()], revision: u64) {
        let mut state = self.state_mut();
        if revision < state.revision || has_another_past(&state, &kinds) {
            state.kinds = kinds;
            state.history.restart(revision);
        } else {
            let writes = differences(&state, &kinds, revision);
            let known = state.revision;
            state.history.push_gap(known, revision);
            for write in writes {
                state.apply(write);
            }
        }
        state.revision = revision;
        self.tell(state);
    }
}

/// Whether the new objects include a write up to the state's revision that the state does not have.
fn has_another_past(state: &CacheState, kinds: &[ObjectMap; Kind::ALL.len()]) -> bool {
    Kind::ALL.into_iter().any(|kind| {
        let mut past = kinds[kind as usize].after(None).filter(|object| object.revision <= state.revision);
        past.any(|object| state.objects(kind).get(&object.name) != Some(object))
    })
}

/// The writes that lead from the state to the given one, in the order of their revisions.
///
/// A removal is given the latest revision that it can have had.
fn differences(state: &CacheState, kinds: &[ObjectMap; Kind::ALL.len()], revision: u64) -> Vec<Write> {
    let mut writes = Vec::new();
    for kind in Kind::ALL {
        let (old, new) = (state.objects(kind), &kinds[kind as usize]);
        for object in old.after(None).filter(|object| new.get(&object.name).is_none()) {
            writes.push(removal(object, revision));
        }
        for object in new.after(None) {
            match old.get(&object.name) {
                Some(before) if before.revision == object.revision => continue,
                // Removed and created again: the removal was before the creation.
                Some(before) if before.create_revision != object.create_revision => {
                    writes.push(removal(before, object.create_revision - 1));
                }
                _ => {}
            }
            writes.push(Write {
                revision: object.revision,
                kind,
                name: object.name.clone(),
                object: Some(Arc::clone(object)),
            });
        }
    }
    // Stable, and a removal was pushed before the creation that followed it.
    writes.sort_by_key(|write| write.revision);
    writes
}

fn removal(object: &Object, revision: u64) -> Write {
    Write { revision, kind: object.kind, name: object.name.clone(), object: None }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use crate::cache::{History, HistoryLimits};
    use crate::{Error, Watch, WatchOptions};

    use super::*;

    fn objects(revision: u64) -> [ObjectMap; 2] {
        let (kind, payload) = (Kind::FlowSchema, Bytes::new());
        let object = Object { kind, name: "a".into(), revision, create_revision: revision, payload };
        [ObjectMap::from_sorted(&[Arc::new(object)]), ObjectMap::default()]
    }

    #[tokio::test]
    async fn an_old_backup_ends_all_watches() {
        let history = History::new(50, HistoryLimits::default());
        let cache = Arc::new(Cache::new(objects(50), history, 50));
        let mut watch = Watch::new(Arc::clone(&cache), WatchOptions::after(50)).unwrap();
        assert_eq!(watch.try_next().unwrap(), None);
        cache.replace(objects(20), 20);
        assert!(matches!(watch.next().await, Err(Error::TooOld { .. })));
        assert_eq!(cache.list(Kind::FlowSchema, None, 0).revision, 20);
        // After the gap, watches go on as usual.
        let mut watch = Watch::new(Arc::clone(&cache), WatchOptions::after(20)).unwrap();
        cache.apply([removal(&cache.get(Kind::FlowSchema, "a").unwrap(), 21)], 21);
        assert_eq!(watch.next().await.unwrap().revision, 21);
    }

    #[tokio::test]
    async fn an_old_backup_that_was_written_to_ends_all_watches_too() {
        let cache = Arc::new(Cache::new(objects(50), History::new(50, HistoryLimits::default()), 50));
        let mut watch = Watch::new(Arc::clone(&cache), WatchOptions::after(50)).unwrap();
        cache.replace(objects(49), 60);
        assert!(matches!(watch.next().await, Err(Error::TooOld { .. })));
        assert_eq!(cache.get(Kind::FlowSchema, "a").unwrap().revision, 49);
    }
}
