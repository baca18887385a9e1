//! How many requests a level has of each kind, for everybody to read without its lock.

use std::sync::atomic::{AtomicI64, Ordering};

use evenkeel_engine::RequestInfo;

/// How many requests wait and execute. Written by whoever holds the level's lock, read by anybody.
#[derive(Debug, Default)]
pub(crate) struct Crowd([AtomicI64; 4]);

/// Whether a request reads or writes (HF-19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Access {
    #[default]
    ReadOnly,
    Mutating,
}

/// What a request of a crowd does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doing {
    Waiting,
    Executing,
}

// === impl Crowd ===

impl Crowd {
    /// All there are to count, in the order of [`counts`](Self::counts).
    pub(crate) const KINDS: [(Doing, Access); 4] = [
        (Doing::Waiting, Access::ReadOnly),
        (Doing::Waiting, Access::Mutating),
        (Doing::Executing, Access::ReadOnly),
        (Doing::Executing, Access::Mutating),
    ];

    /// There are that many more. A load and a store: the lock of the level keeps other writers away.
    #[inline]
    pub(crate) fn add(&self, doing: Doing, access: Access, more: i64) {
        let count = &self.0[2 * doing as usize + access as usize];
        count.store(count.load(Ordering::Relaxed) + more, Ordering::Relaxed);
    }

    pub(crate) fn counts(&self) -> [i64; 4] {
        [0, 1, 2, 3].map(|kind| self.0[kind].load(Ordering::Relaxed))
    }
}

// === impl Access ===

impl Access {
    #[inline]
    pub(crate) fn of(request: &RequestInfo<'_>) -> Self {
        if request.is_read_only() { Self::ReadOnly } else { Self::Mutating }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnly",
            Self::Mutating => "mutating",
        }
    }
}

// === impl Doing ===

impl Doing {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Executing => "executing",
        }
    }
}
