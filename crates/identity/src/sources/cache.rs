//! A bounded cache: entries that have not been used lately are dropped.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps what was used lately, in two generations: when the younger one is full, the older one goes. Workers that look for
/// different things seldom meet at the same lock, and hold it for a look-up only.
pub(super) struct Cache<K, V> {
    shards: [Mutex<Generations<K, V>>; SHARDS],
    hasher: RandomState,
}

struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

const SHARDS: usize = 16;
/// How many things a generation of a shard has at most; so there are 8192 in all.
const GENERATION_MAX: usize = 256;

// === impl Cache ===

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// What is kept under this key.
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut shard = self.shard(key);
        if let Some(value) = shard.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = shard.old.remove_entry(key)?;
        shard.keep(key, value.clone());
        Some(value)
    }

    /// Keeps it.
    pub(super) fn keep(&self, key: K, value: V) {
        self.shard(&key).keep(key, value);
    }

    fn shard<Q: Hash + ?Sized>(&self, key: &Q) -> MutexGuard<'_, Generations<K, V>> {
        // The upper bits: the maps inside use the lower ones of other hashes.
        let index = usize::try_from(self.hasher.hash_one(key) >> 60).unwrap_or_default();
        self.shards[index % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        let shards = std::array::from_fn(|_| Mutex::new(Generations { young: HashMap::new(), old: HashMap::new() }));
        Self { shards, hasher: RandomState::new() }
    }
}

impl<K, V> std::fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

// === impl Generations ===

impl<K: Hash + Eq, V> Generations<K, V> {
    fn keep(&mut self, key: K, value: V) {
        if self.young.len() >= GENERATION_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_holds_more_than_its_bound_and_keeps_what_is_used() {
        let cache = Cache::<String, u32>::default();
        cache.keep("used".to_owned(), 7);
        for number in 0..100_000 {
            cache.keep(number.to_string(), number);
            assert_eq!(cache.get("used"), Some(7), "{number}");
        }
        let held: usize =
            cache.shards.iter().map(|shard| shard.lock().unwrap()).map(|s| s.young.len() + s.old.len()).sum();
        assert!(held <= SHARDS * 2 * GENERATION_MAX, "{held}");
        assert_eq!((cache.get("99999"), cache.get("5")), (Some(99_999), None));
    }
}
