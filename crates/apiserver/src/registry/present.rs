//! `Present`: the objects that there are, for those who look at all of them again and again.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object};
use evenkeel_store::List;

use super::Record;
use crate::failure::Failure;

/// The objects that there were the last time somebody looked, in the order of their names. Only what has changed since is
/// decoded.
///
/// They are without their managed fields, which are the larger part of most objects and of no use here.
#[derive(Debug)]
pub(crate) struct Present<S: HubSpec> {
    known: Mutex<Vec<Known<S>>>,
}

#[derive(Debug)]
struct Known<S: HubSpec> {
    revision: u64,
    object: Arc<Object<V1, S>>,
}

// === impl Present ===

impl<S: HubSpec> Default for Present<S> {
    fn default() -> Self {
        Self { known: Mutex::default() }
    }
}

impl<S: HubSpec> Present<S> {
    /// The objects of a whole list.
    pub(crate) fn show(&self, list: &List) -> Result<Vec<Arc<Object<V1, S>>>, Failure> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = known.as_slice();
        let mut present = Vec::with_capacity(list.items.len());
        for stored in &list.items {
            let (_, from_here) = rest.split_at(rest.partition_point(|known| known.object.name() < &*stored.name));
            rest = from_here;
            let object = match rest.first() {
                Some(known) if known.revision == stored.revision => Arc::clone(&known.object),
                _ => {
                    let mut object = Record::read(&stored.payload, stored.revision)?;
                    object.metadata.resource_version = stored.revision.to_string();
                    object.metadata.managed_fields = Vec::new();
                    Arc::new(object)
                }
            };
            present.push(Known { revision: stored.revision, object });
        }
        let objects = present.iter().map(|known| Arc::clone(&known.object)).collect();
        *known = present;
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::Kind;
    use evenkeel_api::v1::{FlowSchema, FlowSchemaSpec};

    use super::*;

    fn list(objects: &[(&str, u64)]) -> List {
        let stored = |(name, revision): &(&str, u64)| {
            let schema = FlowSchema::builder(*name).priority_level("a").build();
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
        let before = present.show(&list(&[("a", 1), ("b", 2), ("d", 3)])).unwrap();
        let after = present.show(&list(&[("b", 2), ("c", 4), ("d", 5)])).unwrap();
        let seen: Vec<_> = after.iter().map(|object| (object.name(), &*object.metadata.resource_version)).collect();
        assert_eq!(seen, [("b", "2"), ("c", "4"), ("d", "5")]);
        assert!(Arc::ptr_eq(&before[1], &after[0]), "it is the same");
        assert!(!Arc::ptr_eq(&before[2], &after[2]), "it was written");
    }
}
