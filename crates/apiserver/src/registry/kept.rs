//! `Kept`: objects that were decoded lately, by revision, so that a read decodes nothing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use evenkeel_api::HubSpec;
use evenkeel_store::Object;

use super::Record;
use crate::failure::Failure;

/// Objects that were decoded lately. A revision is never used twice, so what is kept is never wrong.
#[derive(Debug)]
pub(crate) struct Kept<S: HubSpec> {
    generations: RwLock<Generations<S>>,
}

/// What was used lately, and what was used before that. When the first is full it takes the place of the second, so that
/// what nobody asks for goes away and no more than twice [`YOUNG_BYTES_MAX`] are kept.
#[derive(Debug)]
struct Generations<S: HubSpec> {
    young: HashMap<u64, Arc<Record<S>>>,
    /// How long the payloads are that the young ones were decoded from.
    young_bytes: usize,
    old: HashMap<u64, Arc<Record<S>>>,
}

/// Decoded, an object takes several times as much.
const YOUNG_BYTES_MAX: usize = 8 * 1024 * 1024;

// === impl Kept ===

impl<S: HubSpec> Default for Kept<S> {
    fn default() -> Self {
        Self { generations: RwLock::new(Generations { young: HashMap::new(), young_bytes: 0, old: HashMap::new() }) }
    }
}

impl<S: HubSpec> Kept<S> {
    /// The object as answers show it.
    pub(crate) fn show(&self, object: &Arc<Object>) -> Result<Arc<Record<S>>, Failure> {
        if let Some(known) = self.read().young.get(&object.revision) {
            return Ok(Arc::clone(known));
        }
        self.add(object)
    }

    /// The same for many.
    pub(crate) fn show_all(&self, objects: &[Arc<Object>]) -> Result<Vec<Arc<Record<S>>>, Failure> {
        let mut shown = Vec::with_capacity(objects.len());
        let mut generations = self.read();
        for object in objects {
            if let Some(known) = generations.young.get(&object.revision) {
                shown.push(Arc::clone(known));
            } else {
                drop(generations);
                shown.push(self.add(object)?);
                generations = self.read();
            }
        }
        Ok(shown)
    }

    fn add(&self, object: &Arc<Object>) -> Result<Arc<Record<S>>, Failure> {
        let known = self.read().old.get(&object.revision).map(Arc::clone);
        let shown = match known {
            Some(known) => known,
            None => Arc::new(Record::decode(&object.payload, object.revision)?),
        };
        let mut generations = self.write();
        if generations.young_bytes >= YOUNG_BYTES_MAX {
            generations.old = std::mem::take(&mut generations.young);
            generations.young_bytes = 0;
        }
        if generations.young.insert(object.revision, Arc::clone(&shown)).is_none() {
            generations.young_bytes += object.payload.len();
        }
        Ok(shown)
    }

    fn read(&self) -> RwLockReadGuard<'_, Generations<S>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Generations<S>> {
        self.generations.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::v1::{FlowSchemaSpec, V1};
    use evenkeel_api::{Kind, Object as ApiObject};

    use super::*;

    /// An object of the store with so long an annotation.
    fn stored(revision: u64, annotation_bytes: usize) -> Arc<Object> {
        let mut object = ApiObject::<V1, FlowSchemaSpec>::default();
        object.metadata.annotations.insert("a".to_owned(), "-".repeat(annotation_bytes));
        let payload = serde_json::to_vec(&object).unwrap().into();
        Arc::new(Object { kind: Kind::FlowSchema, name: "one".into(), revision, create_revision: 1, payload })
    }

    #[test]
    fn large_objects_are_limited_by_their_bytes() {
        const BYTES: usize = 200_000;
        let kept = Kept::<FlowSchemaSpec>::default();
        for revision in 1..=380 {
            assert_eq!(kept.show(&stored(revision, BYTES)).unwrap().revision, revision);
        }
        let generations = kept.read();
        let bytes = (generations.young.len() + generations.old.len()) * BYTES;
        // The last one of each may go beyond the limit.
        assert!((YOUNG_BYTES_MAX..2 * (YOUNG_BYTES_MAX + 2 * BYTES)).contains(&bytes), "{bytes}");
    }
}
