//! `Present`: the objects that there are, for those who look at all of them again and again.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::List;

use super::{Record, is_same};

/// The objects that there were the last time somebody looked, in the order of their names. Only what has changed since is
/// decoded.
///
/// They are without their managed fields, which are the larger part of most objects and of no use here. Those that cannot
/// be read are left out, which is said once.
#[derive(Debug)]
pub(crate) struct Present<S: HubSpec> {
    known: Mutex<Vec<Known<S>>>,
}

#[derive(Debug)]
struct Known<S: HubSpec> {
    stored: Arc<evenkeel_store::Object>,
    /// None if it cannot be read.
    object: Option<Arc<Object<V1, S>>>,
}

// === impl Present ===

impl<S: HubSpec> Default for Present<S> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

impl<S: HubSpec> Present<S> {
    /// The objects of a whole list.
    pub(crate) fn show(&self, list: &List) -> Vec<Arc<Object<V1, S>>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = known.as_slice();
        let mut present = Vec::with_capacity(list.items.len());
        for stored in &list.items {
            let (_, from_here) = rest.split_at(rest.partition_point(|known| known.stored.name < stored.name));
            rest = from_here;
            let object = match rest.first() {
                Some(known) if is_same(&known.stored, stored) => known.object.clone(),
                _ => read(stored),
            };
            present.push(Known { stored: Arc::clone(stored), object });
        }
        let objects = present.iter().filter_map(|known| known.object.clone()).collect();
        tell_of_healed(&known, &present);
        *known = present;
        objects
    }
}

fn read<S: HubSpec>(stored: &evenkeel_store::Object) -> Option<Arc<Object<V1, S>>> {
    match Record::read(stored) {
        Ok(mut object) => {
            object.metadata.resource_version = stored.revision.to_string();
            object.metadata.managed_fields = Vec::new();
            Some(Arc::new(object))
        }
        Err(problem) => {
            tracing::warn!(%problem, "an object does not take effect, because it cannot be read");
            None
        }
    }
}

/// Says of each object that could not be read that this is over.
fn tell_of_healed<S: HubSpec>(before: &[Known<S>], now: &[Known<S>]) {
    for Known { stored, .. } in before.iter().filter(|known| known.object.is_none()) {
        let place = now.binary_search_by(|known| known.stored.name.cmp(&stored.name));
        if place.is_err() || place.is_ok_and(|place| now[place].object.is_some()) {
            let (kind, name) = (S::KIND, &*stored.name);
            tracing::info!(%kind, name, "the object that could not be read is gone, or can be read again");
        }
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::Kind;
    use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec};

    use super::*;

    fn list(objects: &[(&str, u64)]) -> List {
        list_of_level("a", objects)
    }

    fn list_of_level(level: &str, objects: &[(&str, u64)]) -> List {
        let stored = |(name, revision): &(&str, u64)| {
            let schema = FlowSchema::builder(*name).priority_level(level).build();
            let payload = serde_json::to_vec(&schema).unwrap().into();
            let (name, create_revision) = ((*name).into(), 1);
            let kind = Kind::FlowSchema;
            Arc::new(evenkeel_store::Object { kind, name, revision: *revision, create_revision, payload })
        };
        List { revision: 9, items: objects.iter().map(stored).collect(), remaining: 0 }
    }

    #[test]
    fn only_what_has_changed_is_decoded_again() {
        let present = Present::<FlowSchemaSpec>::default();
        let before = present.show(&list(&[("a", 1), ("b", 2), ("d", 3)]));
        let after = present.show(&list(&[("b", 2), ("c", 4), ("d", 5)]));
        let seen: Vec<_> = after.iter().map(|object| (object.name(), &*object.metadata.resource_version)).collect();
        assert_eq!(seen, [("b", "2"), ("c", "4"), ("d", "5")]);
        assert!(Arc::ptr_eq(&before[1], &after[0]), "it is the same");
        assert!(!Arc::ptr_eq(&before[2], &after[2]), "it was written");
    }

    #[test]
    fn a_revision_that_is_used_again_shows_what_has_it_now() {
        let present = Present::<FlowSchemaSpec>::default();
        present.show(&list(&[("a", 1), ("b", 2)]));
        let after = present.show(&list_of_level("other", &[("a", 1), ("c", 2)]));
        let seen: Vec<_> =
            after.iter().map(|object| (object.name(), &*object.spec.priority_level_configuration.name)).collect();
        assert_eq!(seen, [("a", "other"), ("c", "other")]);
    }

    #[test]
    fn what_cannot_be_read_is_left_out_until_it_can() {
        let present = Present::<FlowSchemaSpec>::default();
        let broken = |mut list: List| {
            let stored = evenkeel_store::Object { payload: "garbage".into(), ..(*list.items[1]).clone() };
            list.items[1] = Arc::new(stored);
            list
        };
        let names = |objects: Vec<Arc<FlowSchema>>| -> Vec<String> {
            objects.iter().map(|object| object.name().to_owned()).collect()
        };
        let all = [("a", 1), ("b", 2), ("c", 3)];
        assert_eq!(names(present.show(&broken(list(&all)))), ["a", "c"]);
        assert_eq!(names(present.show(&broken(list(&all)))), ["a", "c"]);
        assert_eq!(names(present.show(&list(&all))), ["a", "b", "c"]);
    }
}
