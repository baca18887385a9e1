//! How fresh a read has to be, what a list is asked for, and what it returns.

use std::sync::Arc;
use std::time::Instant;

use crate::Object;

/// Which state a read shows.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum At {
    /// What is at hand. It may be behind the store by as much as [`Freshness`] says; it never goes back behind what the
    /// same `Store` has acknowledged.
    #[default]
    Cached,
    /// Linearizable: everything that was acknowledged before the read began.
    Latest,
    /// This revision or a later one.
    NotOlderThan(u64),
    /// Exactly this revision. [`Error::TooOld`](crate::Error::TooOld) if the history does not reach back to it.
    Exactly(u64),
}

/// The part of a kind's objects that a list shows. The default is all of them, from what is at hand.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// Which state.
    pub at: At,
    /// At most so many objects; zero for no limit.
    pub limit: usize,
    /// Only objects whose names come after this one: the last name of the page before. Pages of one list are asked for
    /// with [`At::Exactly`] and the revision of the first.
    pub after: Option<String>,
}

/// Objects of a kind as they were at one revision, in the order of their names.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The revision of the snapshot; a watch from here on misses nothing and repeats nothing.
    pub revision: u64,
    /// The objects.
    pub items: Vec<Arc<Object>>,
    /// How many objects come after these.
    pub remaining: usize,
}

/// How fresh the cache is.
///
/// Not `#[non_exhaustive]`: stores of your own make or read all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freshness {
    /// Everything up to this revision is in the cache.
    pub revision: u64,
    /// Since when the cache has not been connected to where the objects are; `None` while it is.
    pub disconnected_since: Option<Instant>,
    /// Whether a write to the disk has failed, and the store has not recovered yet: writes are refused meanwhile.
    pub is_broken: bool,
}
