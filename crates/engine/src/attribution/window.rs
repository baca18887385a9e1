//! `Window`: the heaviest keys of the last minute, or of half of it right after a new half has begun.

use super::heavy_hitters::{HeavyHitters, Key};
use super::random::Random;

/// The heaviest keys of the current half minute and of the one before. Nothing is allocated before there is something to
/// count.
#[derive(Debug)]
pub(super) struct Window<K> {
    slots: usize,
    current: Option<HeavyHitters<K>>,
    previous: Previous<K>,
}

/// The heaviest keys of a half that is over.
#[derive(Debug)]
struct Previous<K> {
    top: Vec<(K, u64)>,
    total: u64,
    error: u64,
}

/// The keys of a window and their weights.
#[derive(Debug)]
pub(super) struct Weights<K> {
    /// The heaviest, in descending order.
    pub(super) top: Vec<(K, u64)>,
    /// The weight of all keys.
    pub(super) total: u64,
    /// By how much a weight may be wrong.
    pub(super) error: u64,
}

/// How many keys are remembered of a half that is over.
const REMEMBERED: usize = 64;

// === impl Window ===

impl<K: Key> Window<K> {
    /// A window whose table has so many slots.
    pub(super) fn new(slots: usize) -> Self {
        Self { slots, current: None, previous: Previous::default() }
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let remembered = self.previous.top.capacity() * size_of::<(K, u64)>();
        remembered + self.current.as_ref().map_or(0, HeavyHitters::bytes)
    }

    /// Adds weight to a key. If the key has become one of the heaviest, as far as that can be told so cheaply, returns true.
    #[inline]
    pub(super) fn add(&mut self, key: K, weight: u64, random: &mut Random) -> bool {
        let slots = self.slots;
        let current = self.current.get_or_insert_with(|| HeavyHitters::new(slots));
        let known = current.add(key, weight, random);
        known.is_some_and(|weight| weight >= current.total() / WORTH_A_NAME)
    }

    /// Begins another half.
    pub(super) fn turn(&mut self) {
        self.previous = match &mut self.current {
            None => Previous::default(),
            Some(current) => {
                let mut top = current.top(REMEMBERED);
                top.shrink_to_fit();
                // A key that is not remembered is not heavier than this.
                let forgotten = if top.len() < REMEMBERED { 0 } else { top.last().map_or(0, |(_, weight)| *weight) };
                let previous = Previous { total: current.total(), error: current.error().max(forgotten), top };
                current.start_again();
                previous
            }
        };
    }

    /// Forgets both halves.
    pub(super) fn clear(&mut self) {
        self.previous = Previous::default();
        if let Some(current) = &mut self.current {
            current.start_again();
        }
    }

    /// The weight of a key in both halves.
    pub(super) fn weight(&self, key: K) -> u64 {
        let before = self.previous.top.iter().find(|(known, _)| *known == key).map_or(0, |(_, weight)| *weight);
        before + self.current.as_ref().map_or(0, |current| current.weight(key))
    }

    /// The heaviest keys, so many at most, and what all weigh.
    pub(super) fn weights(&self, count: usize) -> Weights<K> {
        let Previous { top: previous, total, error } = &self.previous;
        let mut top = match &self.current {
            // The heaviest of both are among these, or among those that are remembered.
            Some(current) => current.top(count.max(REMEMBERED)),
            None => Vec::new(),
        };
        let known = top.len();
        for (key, weight) in previous {
            match top[..known].iter_mut().find(|(known, _)| known == key) {
                Some((_, sum)) => *sum += weight,
                None => top.push((*key, weight + self.current.as_ref().map_or(0, |current| current.weight(*key)))),
            }
        }
        top.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        top.truncate(count);
        let current = self.current.as_ref();
        Weights {
            top,
            total: total + current.map_or(0, HeavyHitters::total),
            error: error + current.map_or(0, HeavyHitters::error),
        }
    }
}

/// A key with this part of all weight, one in so many, may be among those that are shown.
const WORTH_A_NAME: u64 = 512;

// === impl Previous ===

impl<K> Default for Previous<K> {
    fn default() -> Self {
        Self { top: Vec::new(), total: 0, error: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_are_added_up() {
        let (mut window, mut random) = (Window::new(256), Random::new(1));
        assert_eq!(window.bytes(), 0);
        window.add(7_u64, 100, &mut random);
        window.add(8, 30, &mut random);
        window.turn();
        window.add(8, 90, &mut random);
        window.add(9, 1, &mut random);
        let weights = window.weights(2);
        assert_eq!((weights.top, weights.total, weights.error), (vec![(8, 120), (7, 100)], 221, 0));
        assert_eq!([7, 8, 9, 10].map(|key| window.weight(key)), [100, 120, 1, 0]);
        window.turn();
        assert_eq!(window.weights(9).top, [(8, 90), (9, 1)]);
        window.turn();
        assert_eq!(window.weights(9).total, 0);
    }
}
