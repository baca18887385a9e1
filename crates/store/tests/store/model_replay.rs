//! What a store must have shown, worked out afterwards from the writes that it has acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;

use evenkeel_api::Kind;
use evenkeel_store::{Change, Event, List, Object};

/// A write as its writer knows it.
#[derive(Debug, Clone)]
pub(crate) struct Acknowledged {
    pub(crate) revision: u64,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The revision that it was conditional on; `None` for a creation.
    pub(crate) expected: Option<u64>,
    /// What the store acknowledged; `None` for a removal.
    pub(crate) object: Option<Arc<Object>>,
}

/// The objects after each write.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) events: Vec<Event>,
    states: BTreeMap<u64, BTreeMap<(Kind, String), Arc<Object>>>,
}

impl Model {
    /// Replays the writes in the order of their revisions; each must have been possible at its place.
    pub(crate) fn replay(start: u64, mut writes: Vec<Acknowledged>) -> Self {
        writes.sort_by_key(|write| write.revision);
        assert!(writes.is_sorted_by(|a, b| a.revision < b.revision), "two writes have one revision");
        let mut objects = BTreeMap::new();
        let mut model = Self { events: Vec::new(), states: BTreeMap::from([(start, objects.clone())]) };
        for write in writes {
            let key = (write.kind, write.name.clone());
            let previous: Option<Arc<Object>> = objects.get(&key).cloned();
            assert_eq!(previous.as_ref().map(|previous| previous.revision), write.expected, "{write:?}");
            let change = match (write.object.clone(), previous) {
                (Some(object), Some(previous)) => Change::Updated { object, previous },
                (Some(object), None) => Change::Created { object },
                (None, Some(previous)) => Change::Deleted { previous },
                (None, None) => panic!("removed without having been: {write:?}"),
            };
            match write.object {
                Some(object) => objects.insert(key, object),
                None => objects.remove(&key),
            };
            model.events.push(Event { revision: write.revision, change });
            model.states.insert(write.revision, objects.clone());
        }
        model
    }

    /// What a watcher has to be told.
    pub(crate) fn events_after(&self, after: u64, kind: Option<Kind>) -> Vec<Event> {
        let wanted = |event: &&Event| event.revision > after && kind.is_none_or(|kind| kind == event.kind());
        self.events.iter().filter(wanted).cloned().collect()
    }

    /// Whether a list is what was there at its revision.
    pub(crate) fn check(&self, kind: Kind, after: Option<&str>, limit: usize, list: &List) {
        let state = &self.states[&list.revision];
        let all: Vec<_> = state
            .iter()
            .filter(|((of, name), _)| *of == kind && after.is_none_or(|after| **name > *after))
            .map(|(_, object)| Arc::clone(object))
            .collect();
        let shown = if limit == 0 { all.len() } else { limit.min(all.len()) };
        assert_eq!(list.items, all[..shown]);
        assert_eq!(list.remaining, all.len() - shown);
    }
}
