//! Time as the engine knows it: a number that somebody hands in.
//!
//! The engine never reads a clock (rule CV-7): the caller says when an event happens, and a test or a simulation may say
//! whatever it likes, times that stand still or go backwards included.

use std::fmt;
use std::ops::{Add, Sub};

/// A signed span of time in nanoseconds.
pub type Nanos = i64;

/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;
/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// A point in time: nanoseconds since a moment that the caller has chosen (CV-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(Nanos);

// === impl Instant ===

impl Instant {
    /// So many nanoseconds after the chosen moment.
    pub const fn from_nanos(nanos: Nanos) -> Self {
        Self(nanos)
    }

    /// How many nanoseconds after the chosen moment.
    pub const fn as_nanos(self) -> Nanos {
        self.0
    }
}

impl Add<Nanos> for Instant {
    type Output = Self;

    /// Stops at the end of time instead of wrapping.
    fn add(self, span: Nanos) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub for Instant {
    type Output = Nanos;

    /// Negative when `earlier` is the later one.
    fn sub(self, earlier: Self) -> Nanos {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ns", self.0)
    }
}
