//! `DecodedCache`: recently decoded objects, by revision, so that most reads decode nothing.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use evenkeel_api::v1::V1;
use evenkeel_api::{HubSpec, Object as ApiObject};
use evenkeel_store::Object;

use super::Record;
use crate::failure::Failure;

/// Recently decoded objects.
///
/// The key is the revision, which is nearly always unique. But an etcd that was restored from a backup uses revisions
/// again, and a transaction of etcd gives several objects the same one. So an entry counts only if its name and bytes are
/// the same.
#[derive(Debug)]
pub(crate) struct DecodedCache<S: HubSpec> {
    generations: RwLock<CacheGenerations<S>>,
}

/// Two generations: a full young one replaces the old one, so that unused entries go away, and the cache never holds
/// more than twice [`YOUNG_BYTES_MAX`].
#[derive(Debug)]
struct CacheGenerations<S: HubSpec> {
    young: CacheGeneration<S>,
    /// The bytes of the payloads that the young ones were decoded from.
    young_bytes: usize,
    old: CacheGeneration<S>,
}

/// Objects by revision.
#[derive(Debug)]
struct CacheGeneration<S: HubSpec> {
    records: HashMap<u64, (Arc<Object>, Arc<Record<S>>)>,
}

/// Decoded, an object takes about three times as much.
const YOUNG_BYTES_MAX: usize = 2 * 1024 * 1024;

// === impl DecodedCache ===

impl<S: HubSpec> Default for DecodedCache<S> {
    fn default() -> Self {
        let generations =
            CacheGenerations { young: CacheGeneration::default(), young_bytes: 0, old: CacheGeneration::default() };
        Self { generations: RwLock::new(generations) }
    }
}

impl<S: HubSpec> DecodedCache<S> {
    /// The decoded object.
    pub(crate) fn decode(&self, object: &Arc<Object>) -> Result<Arc<Record<S>>, Failure> {
        if let Some(known) = self.read().young.get(object) {
            return Ok(Arc::clone(known));
        }
        self.add(object)
    }

    /// The decoded objects of a list.
    pub(crate) fn decode_all(&self, objects: &[Arc<Object>]) -> Result<Vec<Arc<Record<S>>>, Failure> {
        let mut shown = Vec::with_capacity(objects.len());
        let mut generations = self.read();
        for object in objects {
            if let Some(known) = generations.young.get(object) {
                shown.push(Arc::clone(known));
            } else {
                drop(generations);
                shown.push(self.add(object)?);
                generations = self.read();
            }
        }
        Ok(shown)
    }

    /// The size of those that are not decoded yet.
    pub(crate) fn unknown_bytes(&self, objects: &[Arc<Object>]) -> usize {
        let generations = self.read();
        let is_known =
            |object: &Arc<Object>| generations.young.get(object).is_some() || generations.old.get(object).is_some();
        objects.iter().filter(|object| !is_known(object)).map(|object| object.payload.len()).sum()
    }

    /// Adds an object that was just written, so that it need not be decoded.
    pub(crate) fn add_written(&self, stored: &Arc<Object>, object: ApiObject<V1, S>) -> Arc<Record<S>> {
        debug_assert_eq!(Record::read(stored).as_ref(), Ok(&object), "decoded, it is what was encoded");
        let record = Arc::new(Record::new(object, stored.revision));
        self.insert(stored, &record);
        record
    }

    /// The object if it is decoded already.
    pub(crate) fn known(&self, object: &Arc<Object>) -> Option<Arc<Record<S>>> {
        let generations = self.read();
        generations.young.get(object).or_else(|| generations.old.get(object)).cloned()
    }

    fn add(&self, object: &Arc<Object>) -> Result<Arc<Record<S>>, Failure> {
        let known = self.read().old.get(object).map(Arc::clone);
        let record = match known {
            Some(known) => known,
            None => Arc::new(Record::decode(object)?),
        };
        self.insert(object, &record);
        Ok(record)
    }

    fn insert(&self, object: &Arc<Object>, record: &Arc<Record<S>>) {
        let mut generations = self.write();
        if generations.young_bytes >= YOUNG_BYTES_MAX {
            generations.old = std::mem::take(&mut generations.young);
            generations.young_bytes = 0;
        }
        let replaced = generations.young.records.insert(object.revision, (Arc::clone(object), Arc::clone(record)));
        let replaced_bytes = replaced.map_or(0, |(object, _)| object.payload.len());
        generations.young_bytes = (generations.young_bytes + object.payload.len()).saturating_sub(replaced_bytes);
    }

    fn read(&self) -> RwLockReadGuard<'_, CacheGenerations<S>> {
        self.generations.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, CacheGenerations<S>> {
        self.generations.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl CacheGeneration ===

impl<S: HubSpec> Default for CacheGeneration<S> {
    fn default() -> Self {
        Self { records: HashMap::new() }
    }
}

impl<S: HubSpec> CacheGeneration<S> {
    /// The record of exactly this object.
    fn get(&self, object: &Arc<Object>) -> Option<&Arc<Record<S>>> {
        let (decoded, record) = self.records.get(&object.revision)?;
        super::is_same(decoded, object).then_some(record)
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_api::Kind;
    use evenkeel_api::v1::FlowSchemaSpec;

    use super::*;

    /// An object of the store with so long an annotation.
    fn stored(revision: u64, annotation_bytes: usize) -> Arc<Object> {
        let mut object = ApiObject::<V1, FlowSchemaSpec>::default();
        object.metadata.annotations.insert("a".to_owned(), "-".repeat(annotation_bytes));
        let payload = serde_json::to_vec(&object).unwrap().into();
        Arc::new(Object { kind: Kind::FlowSchema, name: "one".into(), revision, create_revision: 1, payload })
    }

    #[test]
    fn a_reused_revision_shows_the_new_object() {
        let cache = DecodedCache::<FlowSchemaSpec>::default();
        let annotation = |object: &Arc<Object>| cache.decode(object).unwrap().object.metadata.annotations["a"].len();
        let (before, after) = (stored(7, 10), stored(7, 20));
        assert_eq!((annotation(&before), annotation(&after), annotation(&before)), (10, 20, 10));
        let shown = cache.decode_all(&[Arc::clone(&before), after]).unwrap();
        assert_eq!(shown[1].object.metadata.annotations["a"].len(), 20);
        // The same bytes are not decoded again, wherever they are.
        let shown = cache.decode(&before).unwrap();
        assert!(Arc::ptr_eq(&shown, &cache.decode(&stored(7, 10)).unwrap()));
    }

    #[test]
    fn large_objects_are_limited_by_their_bytes() {
        const BYTES: usize = 200_000;
        let cache = DecodedCache::<FlowSchemaSpec>::default();
        for revision in 1..=380 {
            assert_eq!(cache.decode(&stored(revision, BYTES)).unwrap().revision, revision);
        }
        let generations = cache.read();
        let bytes = (generations.young.records.len() + generations.old.records.len()) * BYTES;
        // The last entry of each generation may exceed the limit.
        assert!((YOUNG_BYTES_MAX..2 * (YOUNG_BYTES_MAX + 2 * BYTES)).contains(&bytes), "{bytes}");
    }
}
