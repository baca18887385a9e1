//! `ServerConfig`: the seats of a server, what divides them, and how often.

use std::fmt;
use std::str::FromStr;

use crate::borrowing::{DivideSeats, FaithfulDivision};
use crate::queue_set::NEWCOMER_WAIT;
use crate::time::{Nanos, SECOND};

/// How long after a division of the seats the next one is due in Kubernetes (CL-11).
pub const ADJUSTMENT_PERIOD: Nanos = 10 * SECOND;

/// The seats of a server and how they are divided among its levels.
///
/// ```
/// use evenkeel_engine::Engine;
/// use evenkeel_engine::borrowing::ExactDivision;
/// use evenkeel_engine::controller::ServerConfig;
/// use evenkeel_engine::time::{Instant, SECOND};
///
/// let now = Instant::from_nanos(0);
/// let config = ServerConfig::new(100).division(ExactDivision::default()).period(Some(SECOND));
/// let mut engine: Engine<(), _> = Engine::with_config(config, now);
/// assert_eq!(engine.next_timeout(), Some(now + SECOND));
/// ```
#[derive(Debug, Clone)]
pub struct ServerConfig<D = FaithfulDivision> {
    pub(super) server_limit: i64,
    pub(super) division: D,
    pub(super) period: Option<Nanos>,
    pub(super) borrowing: Borrowing,
    pub(super) newcomer_wait: Nanos,
}

/// When levels borrow seats from each other, and give them back.
///
/// Not `#[non_exhaustive]`: code that shares seats out has to know every way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Borrowing {
    /// As in Kubernetes: the seats are divided once in a while, by what the levels have asked for (CL-11).
    #[default]
    Periodic,
    /// At every event: see [`Ledger`](crate::borrowing::Ledger).
    Immediate,
}

/// The word names no way to borrow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a borrowing mode; use `periodic` or `immediate`")]
pub struct UnknownBorrowing(String);

// === impl Borrowing ===

impl Borrowing {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Periodic => "periodic",
            Self::Immediate => "immediate",
        }
    }
}

impl FromStr for Borrowing {
    type Err = UnknownBorrowing;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = [Self::Periodic, Self::Immediate].into_iter().find(|borrowing| borrowing.name() == word);
        found.ok_or_else(|| UnknownBorrowing(word.to_owned()))
    }
}

impl fmt::Display for Borrowing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

// === impl ServerConfig ===

impl ServerConfig {
    /// A server with that many seats, which are divided as in Kubernetes, every ten seconds.
    pub fn new(server_limit: i64) -> Self {
        let (division, period) = (FaithfulDivision::default(), Some(ADJUSTMENT_PERIOD));
        Self { server_limit, division, period, borrowing: Borrowing::default(), newcomer_wait: NEWCOMER_WAIT }
    }
}

impl<D> ServerConfig<D> {
    /// The same, but the seats are divided in this way.
    #[must_use]
    pub fn division<E: DivideSeats>(self, division: E) -> ServerConfig<E> {
        let Self { server_limit, division: _, period, borrowing, newcomer_wait } = self;
        ServerConfig { server_limit, division, period, borrowing, newcomer_wait }
    }

    /// The same, but the seats are divided so often; `None`: only when the objects or the seats change.
    #[must_use]
    pub fn period(self, period: Option<Nanos>) -> Self {
        Self { period, ..self }
    }

    /// The same, but levels borrow in this way. With [`Borrowing::Immediate`], the division says only what each level has
    /// of its own, lends and may borrow ([`DivideSeats::limits`]).
    #[must_use]
    pub fn borrowing(self, borrowing: Borrowing) -> Self {
        Self { borrowing, ..self }
    }

    /// The same, but levels that queue per flow keep seats for flows of which nothing runs where such a flow would wait for longer than
    /// this (PF-10).
    #[must_use]
    pub fn newcomer_wait(self, wait: Nanos) -> Self {
        Self { newcomer_wait: wait.max(0), ..self }
    }
}
