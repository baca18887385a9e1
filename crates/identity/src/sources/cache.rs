//! A bounded cache: entries that have not been used lately are dropped.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps what was used lately, in two generations: when the younger one is full, the older one goes.
///
/// Each thread has a shard of its own, as long as there are no more threads than shards. Workers then wait for no lock, and
/// share no reference counts: a value that two of them use is kept once for each.
pub(super) struct Cache<K, V> {
    shards: [Shard<K, V>; SHARDS],
}

/// The entries of one thread. No two shards are in the same cache line.
#[repr(align(128))]
struct Shard<K, V>(Mutex<CacheGenerations<K, V>>);

struct CacheGenerations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

const SHARDS: usize = 16;
/// How many entries a generation of a shard has at most. A thread has 2048, and all together have 32,768.
const GENERATION_MAX: usize = 1024;

thread_local! {
    /// The shard of this thread, in every cache.
    static SHARD: usize = NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS;
}

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

// === impl Cache ===

impl<K: Hash + Eq, V: Clone> Cache<K, V> {
    /// The value that is kept under this key.
    pub(super) fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let mut shard = self.shard();
        if let Some(value) = shard.young.get(key) {
            return Some(value.clone());
        }
        let (key, value) = shard.old.remove_entry(key)?;
        shard.keep(key, value.clone());
        Some(value)
    }

    /// Keeps a value.
    pub(super) fn keep(&self, key: K, value: V) {
        self.shard().keep(key, value);
    }

    fn shard(&self) -> MutexGuard<'_, CacheGenerations<K, V>> {
        self.shards[SHARD.with(|shard| *shard)].0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Default for Cache<K, V> {
    fn default() -> Self {
        let shards =
            std::array::from_fn(|_| Shard(Mutex::new(CacheGenerations { young: HashMap::new(), old: HashMap::new() })));
        Self { shards }
    }
}

impl<K, V> std::fmt::Debug for Cache<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").finish_non_exhaustive()
    }
}

// === impl CacheGenerations ===

impl<K: Hash + Eq, V> CacheGenerations<K, V> {
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
            cache.shards.iter().map(|shard| shard.0.lock().unwrap()).map(|s| s.young.len() + s.old.len()).sum();
        assert!(held <= SHARDS * 2 * GENERATION_MAX, "{held}");
        assert_eq!((cache.get("99999"), cache.get("5")), (Some(99_999), None));
    }
}
