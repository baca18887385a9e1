//! `LearntCosts`: what requests of each class have cost, in bounded memory (CO-3).

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

use super::average::Average;
use super::class::{CostClass, mix};
use super::sane;

/// What requests of each class have cost. It keeps [`CLASSES_MAX`] classes at most, of all three widths together; the least recently used
/// one goes.
///
/// ```
/// use evenkeel_engine::cost::{ClassWidth, CostClass, LearntCosts};
///
/// let mut costs = LearntCosts::new(1);
/// let class = CostClass::new(1, 2, 3);
/// assert_eq!(costs.expected(&class), None);
/// for _ in 0..8 {
///     costs.learn(&class, 40.0);
/// }
/// let expected = costs.expected(&class).unwrap();
/// assert_eq!((expected.cost, expected.requests, expected.width), (40.0, 8, ClassWidth::Flow));
/// // Nothing is known of another flow, but of its route.
/// let other = costs.expected(&CostClass::new(1, 2, 4)).unwrap();
/// assert_eq!((other.cost, other.width), (40.0, ClassWidth::Route));
/// ```
#[derive(Debug, Clone)]
pub struct LearntCosts {
    /// The places of the classes in `entries`.
    places: HashMap<u64, u32, KeyHash>,
    entries: Vec<LearntClass>,
    /// The most and the least recently used entry.
    newest: u32,
    oldest: u32,
}

/// What is expected of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Expectation {
    /// What it will cost.
    pub cost: f64,
    /// From how many requests that was learnt.
    pub requests: u64,
    /// The class whose average it is.
    pub width: ClassWidth,
    /// Where that class is, for [`LearntCosts::learn_at`].
    pub place: ClassPlace,
}

/// Where a class was when a request asked what to expect. It may be gone by the time at which the request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassPlace(u32);

/// Which requests an average is of.
///
/// Not `#[non_exhaustive]`: a caller has to handle every width.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ClassWidth {
    /// The requests of one flow on one route.
    Flow,
    /// The requests of all flows of a flow schema on one route.
    Route,
    /// All requests of a flow schema.
    Schema,
}

#[derive(Debug, Clone, Copy)]
struct LearntClass {
    key: u64,
    average: Average,
    newer: u32,
    older: u32,
    /// Where the next wider class was when a request of both ended, to be compared: the three of a request are found by one look-up.
    wider: u32,
}

/// Hashes keys that are hashes already, so that a client cannot choose which of them meet in the table.
#[derive(Debug, Clone, Copy)]
struct KeyHash(u64);

struct KeyHasher {
    seed: u64,
    hash: u64,
}

/// How many classes are kept.
pub const CLASSES_MAX: usize = 4096;
/// An average of fewer requests than these counts only where there is no wider one.
pub const SEEN_MIN: u64 = 8;

/// No entry.
const NONE: u32 = u32::MAX;
const WIDTHS: [ClassWidth; 3] = [ClassWidth::Flow, ClassWidth::Route, ClassWidth::Schema];

// === impl LearntCosts ===

impl LearntCosts {
    /// Nothing has been learnt. The seed should be a secret of the process where clients are not trusted.
    pub fn new(seed: u64) -> Self {
        Self { places: HashMap::with_hasher(KeyHash(seed)), entries: Vec::new(), newest: NONE, oldest: NONE }
    }

    /// What is expected of a request of that class; `None` if nothing is known of its flow schema.
    pub fn expected(&mut self, class: &CostClass) -> Option<Expectation> {
        let expected = self.find(class)?;
        self.use_again(expected.place.0);
        Some(expected)
    }

    /// [`expected`](Self::expected) for somebody who only wants to know: it does not count as a use of the class.
    pub fn peek(&self, class: &CostClass) -> Option<Expectation> {
        self.find(class)
    }

    #[inline]
    fn find(&self, class: &CostClass) -> Option<Expectation> {
        for (key, width) in class.keys.into_iter().zip(WIDTHS) {
            let Some(&place) = self.places.get(&key) else { continue };
            let average = self.entries[place as usize].average;
            if average.seen() >= SEEN_MIN || width == ClassWidth::Schema {
                let (cost, requests) = (average.mean(), average.seen());
                return Some(Expectation { cost, requests, width, place: ClassPlace(place) });
            }
        }
        None
    }

    /// A request of that class has cost this much.
    pub fn learn(&mut self, class: &CostClass, cost: f64) {
        self.learn_at(class, cost, None);
    }

    /// The same for a request whose class was [expected](Self::expected) there: it need not be looked for.
    pub fn learn_at(&mut self, class: &CostClass, cost: f64, place: Option<ClassPlace>) {
        let cost = sane(cost);
        let mut known = place.map(|ClassPlace(place)| place);
        // The wider ones last: they are the ones to keep.
        let mut narrower: Option<u32> = None;
        for key in class.keys {
            let place = match known.filter(|place| self.is_at(*place, key)) {
                Some(place) => {
                    self.use_again(place);
                    place
                }
                None => {
                    let place = self.place_of(key);
                    if let Some(narrower) = narrower {
                        self.entries[narrower as usize].wider = place;
                    }
                    place
                }
            };
            let entry = &mut self.entries[place as usize];
            entry.average.learn(cost);
            (known, narrower) = (Some(entry.wider), Some(place));
        }
    }

    /// How many classes it knows.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the entry of a class is still where it was.
    #[inline]
    fn is_at(&self, place: u32, key: u64) -> bool {
        self.entries.get(place as usize).is_some_and(|entry| entry.key == key)
    }

    /// The entry of a class, which is the most recently used one from now on.
    fn place_of(&mut self, key: u64) -> u32 {
        if let Some(&place) = self.places.get(&key) {
            self.use_again(place);
            return place;
        }
        let entry = LearntClass { key, average: Average::default(), newer: NONE, older: NONE, wider: NONE };
        let place = if self.entries.len() < CLASSES_MAX {
            let place = u32::try_from(self.entries.len()).unwrap_or(NONE);
            self.entries.push(entry);
            place
        } else {
            let place = self.oldest;
            self.unlink(place);
            let gone = std::mem::replace(&mut self.entries[place as usize], entry);
            self.places.remove(&gone.key);
            place
        };
        self.places.insert(key, place);
        self.link_newest(place);
        place
    }

    #[inline]
    fn use_again(&mut self, place: u32) {
        if place != self.newest {
            self.unlink(place);
            self.link_newest(place);
        }
    }

    fn unlink(&mut self, place: u32) {
        let LearntClass { newer, older, .. } = self.entries[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        let entry = &mut self.entries[place as usize];
        (entry.newer, entry.older) = (NONE, before);
        match before {
            NONE => self.oldest = place,
            before => self.entries[before as usize].newer = place,
        }
    }
}

// === impl KeyHash ===

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;

    #[inline]
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher { seed: self.0, hash: 0 }
    }
}

impl Hasher for KeyHasher {
    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.hash = mix(key ^ self.seed);
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = mix(self.hash ^ u64::from(*byte) ^ self.seed);
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}
