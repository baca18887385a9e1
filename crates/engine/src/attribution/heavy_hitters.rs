//! `HeavyHitters`: the heaviest keys of a stream of weighted keys, in bounded memory.
//!
//! It is the algorithm of Misra and Gries with weights, behind threshold sampling. Keys are in a table of open addressing. When
//! the table is three quarters full, the median weight is subtracted from all, and keys without any weight left are
//! forgotten. So the weight of a key is too small by at most what was subtracted in all. What is light compared with the
//! whole stream is added with a probability in proportion to its weight, which leaves the expectation as it is and makes an
//! addition cheap.

use super::random::Random;

/// A key of a table.
pub(super) trait Key: Copy + Eq + Default {
    /// A number in which all bits depend on the key.
    fn mixed(self) -> u64;
}

/// The heaviest keys of a stream.
#[derive(Debug)]
pub(super) struct HeavyHitters<K> {
    slots: Box<[Slot<K>]>,
    used: usize,
    /// The weight that was subtracted, in all, from a key that was in the table all the time.
    purged: u64,
    /// Additions that are lighter than this are sampled.
    threshold: u64,
    /// The weight of everything.
    total: u64,
    additions: u32,
}

/// A key and its weight; there is none if the weight is zero.
#[derive(Debug, Clone, Copy, Default)]
struct Slot<K> {
    key: K,
    weight: u64,
}

/// After so many additions, fewer weights are added and more are sampled.
const ADDITIONS_MAX: u32 = 1 << 18;
/// How many weights the median is estimated from when there are many.
const MEDIAN_SAMPLES: usize = 64;

// === impl HeavyHitters ===

impl<K: Key> HeavyHitters<K> {
    /// An empty table with so many slots, a power of two.
    pub(super) fn new(slots: usize) -> Self {
        let slots = vec![Slot::default(); slots.next_power_of_two()].into();
        Self { slots, used: 0, purged: 0, threshold: 0, total: 0, additions: 0 }
    }

    /// The bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The weight of everything that was added.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// By how much the weight of a key may be wrong because of others.
    pub(super) fn error(&self) -> u64 {
        self.purged.saturating_add(self.threshold)
    }

    /// Adds weight to a key. Returns the weight that the table has of it, if the key was not left out by sampling.
    #[inline]
    pub(super) fn add(&mut self, key: K, weight: u64, random: &mut Random) -> Option<u64> {
        self.total = self.total.saturating_add(weight);
        let weight = if weight >= self.threshold {
            weight
        } else if random.below(self.threshold) < weight {
            self.threshold
        } else {
            return None;
        };
        (weight > 0).then(|| self.put(key, weight))
    }

    fn put(&mut self, key: K, weight: u64) -> u64 {
        self.additions += 1;
        if self.additions >= ADDITIONS_MAX {
            self.additions = ADDITIONS_MAX / 2;
            self.threshold = self.sampling_threshold(ADDITIONS_MAX / 2);
        }
        let index = self.find(key);
        let slot = &mut self.slots[index];
        let is_new = slot.weight == 0;
        (slot.key, slot.weight) = (key, slot.weight.saturating_add(weight));
        let weight = slot.weight;
        if is_new {
            self.used += 1;
            if self.used * 4 >= self.slots.len() * 3 {
                self.purge();
            }
        }
        weight
    }

    /// The slot of a key, or the free one that it would get.
    #[inline]
    fn find(&self, key: K) -> usize {
        let mask = self.slots.len() - 1;
        #[expect(clippy::cast_possible_truncation, reason = "some bits are enough")]
        let mut index = key.mixed() as usize & mask;
        // The loop ends, since a quarter of the slots is free.
        while self.slots[index].weight != 0 && self.slots[index].key != key {
            index = (index + 1) & mask;
        }
        index
    }

    /// The threshold with which the stream so far would have been about so many additions.
    fn sampling_threshold(&self, additions: u32) -> u64 {
        self.threshold.max(self.total / u64::from(additions))
    }

    /// Subtracts the median weight from all keys, and forgets those that have nothing left.
    #[cold]
    fn purge(&mut self) {
        let step = (self.used / MEDIAN_SAMPLES).max(1);
        let weights = self.slots.iter().map(|slot| slot.weight).filter(|weight| *weight > 0).step_by(step);
        let (mut sampled, mut count) = ([0; 2 * MEDIAN_SAMPLES], 0);
        for (place, weight) in sampled.iter_mut().zip(weights) {
            (*place, count) = (weight, count + 1);
        }
        let sampled = &mut sampled[..count];
        sampled.sort_unstable();
        let median = sampled.get(count / 2).copied().unwrap_or_default();
        self.purged = self.purged.saturating_add(median);
        self.subtract(median);
    }

    /// Takes every key out, and puts those back that are heavier, without moving them to other memory.
    fn subtract(&mut self, median: u64) {
        let mask = self.slots.len() - 1;
        // Starts at a slot that is free before, so that every run of keys is seen from its beginning: a key is put back where
        // everything before it in its run is in its final place.
        let start = self.slots.iter().position(|slot| slot.weight == 0).unwrap_or_default();
        self.used = 0;
        for step in 0..self.slots.len() {
            let index = (start + step) & mask;
            let mut slot = std::mem::take(&mut self.slots[index]);
            slot.weight = slot.weight.saturating_sub(median);
            if slot.weight > 0 {
                let free = self.find(slot.key);
                self.slots[free] = slot;
                self.used += 1;
            }
        }
    }

    /// The weight of a key as far as it is known; zero if it is not in the table.
    pub(super) fn weight(&self, key: K) -> u64 {
        self.estimate(self.slots[self.find(key)].weight)
    }

    /// Heavy keys were there whenever something was subtracted.
    fn estimate(&self, weight: u64) -> u64 {
        if weight >= self.purged { weight.saturating_add(self.purged) } else { weight }
    }

    /// All keys that are known, with their weights, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, u64)> {
        let used = self.slots.iter().filter(|slot| slot.weight > 0);
        used.map(|slot| (slot.key, self.estimate(slot.weight)))
    }

    /// The heaviest keys, so many at most, the heaviest first.
    pub(super) fn top(&self, count: usize) -> Vec<(K, u64)> {
        let mut all: Vec<_> = self.iter().collect();
        all.sort_unstable_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        all.truncate(count);
        all
    }

    /// Forgets all keys, and sets the sampling threshold for another stream like this one.
    pub(super) fn start_again(&mut self) {
        self.threshold = self.total / u64::from(ADDITIONS_MAX);
        self.slots.fill(Slot::default());
        (self.used, self.purged, self.total, self.additions) = (0, 0, 0, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    impl Key for u64 {
        fn mixed(self) -> u64 {
            self.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
        }
    }

    #[test]
    fn few_keys_are_exact() {
        let (mut table, mut random) = (HeavyHitters::new(64), Random::new(1));
        for round in 1..=1000 {
            for key in 1..=40 {
                table.add(key, key * round, &mut random);
            }
        }
        let sum = 1000 * 1001 / 2;
        assert_eq!((table.total(), table.error()), (820 * sum, 0));
        assert_eq!(table.top(3), [(40, 40 * sum), (39, 39 * sum), (38, 38 * sum)]);
        assert_eq!(table.weight(77), 0);
    }

    /// AT-1: the estimate of a key is never off by more than the bound says, without sampling.
    #[test]
    fn at_1_weights_are_within_the_error() {
        let (mut table, mut random) = (HeavyHitters::new(128), Random::new(3));
        let mut truth = HashMap::<u64, u64>::new();
        for step in 0..100_000_u64 {
            let bound = 1 + random.below(1 + step % 5000);
            let key = 1 + random.below(bound);
            let weight = 1 + random.below(50);
            *truth.entry(key).or_default() += weight;
            table.add(key, weight, &mut random);
            if step % 100 == 0 {
                assert!(
                    table.iter().all(|(key, weight)| table.weight(key) == weight),
                    "a key is not found where it is"
                );
            }
        }
        assert!(table.threshold == 0 && table.purged > 0);
        for (key, weight) in table.iter() {
            let exact = truth[&key];
            assert!(weight.abs_diff(exact) <= table.error(), "{key}: {weight} for {exact} ± {}", table.error());
            assert_eq!(table.weight(key), weight, "{key} is found where it is");
        }
        for (key, exact) in truth {
            assert!(table.weight(key) > 0 || exact <= table.error(), "{key} with {exact} was forgotten");
        }
    }

    #[test]
    fn what_is_sampled_keeps_its_expectation() {
        let (mut table, mut random) = (HeavyHitters::new(64), Random::new(5));
        let mut exact = [0_u64; 4];
        for _ in 0..2_000_000 {
            let key = random.below(4);
            exact[usize::try_from(key).unwrap()] += 1 + key;
            table.add(key + 1, 1 + key, &mut random);
        }
        assert!(table.threshold > 4, "so much is sampled");
        for (key, weight) in table.iter() {
            let exact = exact[usize::try_from(key - 1).unwrap()];
            assert!(weight.abs_diff(exact) * 50 < exact, "{weight} is not within 2 % of {exact}");
        }
    }

    #[test]
    fn it_starts_again_with_nothing() {
        let (mut table, mut random) = (HeavyHitters::new(64), Random::new(7));
        for key in 0..10_000 {
            table.add(key, 10, &mut random);
        }
        table.start_again();
        assert_eq!((table.total(), table.iter().count(), table.used), (0, 0, 0));
    }
}
