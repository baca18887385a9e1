//! The objects of one kind in the order of their names, cheap to take a snapshot of.
//!
//! A snapshot is a clone of one pointer. A write copies only what a snapshot still holds: one chunk, and the list of
//! chunks.

use std::sync::Arc;

use crate::Object;

/// Large enough that the list of chunks stays short, small enough that copying a chunk costs little.
const CHUNK_LEN_MAX: usize = 128;

type Chunk = Vec<Arc<Object>>;

/// Objects by name. No chunk is empty; chunks and what is in them are in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectMap {
    chunks: Arc<Vec<Arc<Chunk>>>,
    len: usize,
}

// === impl ObjectMap ===

impl ObjectMap {
    /// From objects that are in order already.
    pub(crate) fn from_sorted(objects: &[Arc<Object>]) -> Self {
        debug_assert!(objects.is_sorted_by(|a, b| a.name < b.name));
        // Half full, so that the first writes do not all split chunks.
        let chunks = objects.chunks(CHUNK_LEN_MAX / 2).map(|chunk| Arc::new(chunk.to_vec())).collect();
        Self { chunks: Arc::new(chunks), len: objects.len() }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Arc<Object>> {
        let chunk = self.chunks.get(self.chunk_of(name))?;
        let place = chunk.binary_search_by(|object| (*object.name).cmp(name)).ok()?;
        Some(&chunk[place])
    }

    /// The objects whose names come after `name`; all of them if there is none.
    pub(crate) fn after(&self, name: Option<&str>) -> impl Iterator<Item = &Arc<Object>> {
        let (chunk, skipped) = match name {
            None => (0, 0),
            Some(name) => {
                let chunk = self.chunk_of(name);
                let skipped = |chunk: &Arc<Chunk>| chunk.partition_point(|object| *object.name <= *name);
                (chunk, self.chunks.get(chunk).map_or(0, skipped))
            }
        };
        self.chunks[chunk.min(self.chunks.len())..].iter().flat_map(|chunk| chunk.iter()).skip(skipped)
    }

    /// Puts an object in its place and returns what was there.
    pub(crate) fn put(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        let index = self.chunk_of(&object.name);
        let chunks = Arc::make_mut(&mut self.chunks);
        let Some(chunk) = chunks.get_mut(index) else {
            chunks.push(Arc::new(vec![object]));
            self.len += 1;
            return None;
        };
        let chunk = Arc::make_mut(chunk);
        match chunk.binary_search_by(|other| other.name.cmp(&object.name)) {
            Ok(place) => Some(std::mem::replace(&mut chunk[place], object)),
            Err(place) => {
                chunk.insert(place, object);
                self.len += 1;
                if chunk.len() > CHUNK_LEN_MAX {
                    let upper = chunk.split_off(CHUNK_LEN_MAX / 2);
                    chunks.insert(index + 1, Arc::new(upper));
                }
                None
            }
        }
    }

    /// Takes an object out, if it is there.
    pub(crate) fn remove(&mut self, name: &str) -> Option<Arc<Object>> {
        self.get(name)?;
        let index = self.chunk_of(name);
        let chunks = Arc::make_mut(&mut self.chunks);
        let chunk = Arc::make_mut(&mut chunks[index]);
        let place = chunk.binary_search_by(|object| (*object.name).cmp(name)).ok()?;
        let removed = chunk.remove(place);
        if chunk.is_empty() {
            chunks.remove(index);
        }
        self.len -= 1;
        Some(removed)
    }

    /// The chunk in which a name is or would be: the last that does not begin after it, or the first.
    fn chunk_of(&self, name: &str) -> usize {
        self.chunks.partition_point(|chunk| chunk.first().is_some_and(|first| *first.name <= *name)).saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use evenkeel_api::Kind;
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn object(name: u16, revision: u64) -> Arc<Object> {
        let name = format!("{name:04}").into();
        Arc::new(Object { kind: Kind::FlowSchema, name, revision, create_revision: 1, payload: Bytes::new() })
    }

    proptest! {
        #[test]
        fn objects_are_a_sorted_map_and_snapshots_do_not_change(
            start in 0_u16..600,
            steps in vec((0_u16..600, any::<bool>()), 1..800),
            from in proptest::option::of(0_u16..650),
        ) {
            let sorted: Vec<_> = (0..start).map(|name| object(name, 0)).collect();
            let mut objects = ObjectMap::from_sorted(&sorted);
            let mut model: BTreeMap<Box<str>, Arc<Object>> =
                sorted.into_iter().map(|object| (object.name.clone(), object)).collect();
            let (before, model_before) = (objects.clone(), model.clone());
            for (revision, (name, put)) in steps.into_iter().enumerate() {
                let object = object(name, revision as u64 + 1);
                let (was, model_was) = if put {
                    (objects.put(object.clone()), model.insert(object.name.clone(), object))
                } else {
                    (objects.remove(&object.name), model.remove(&object.name))
                };
                prop_assert_eq!(was, model_was);
            }
            let from = from.map(|name| format!("{name:04}"));
            for (objects, model) in [(&objects, &model), (&before, &model_before)] {
                prop_assert_eq!(objects.len(), model.len());
                let seen: Vec<_> = objects.after(from.as_deref()).cloned().collect();
                let expected: Vec<_> =
                    model.values().filter(|object| from.as_deref().is_none_or(|from| *object.name > *from)).cloned().collect();
                prop_assert_eq!(seen, expected);
                prop_assert!(model.keys().all(|name| objects.get(name) == model.get(name)));
                prop_assert!(objects.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK_LEN_MAX));
            }
        }
    }
}
