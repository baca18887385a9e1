//! `FlightRecord`: one request of a dump.

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::Nanos;

/// A request: when it arrived, what it was, and what became of it.
///
/// Not `#[non_exhaustive]`: recorders make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightRecord {
    /// When it arrived, in nanoseconds since the epoch of the header.
    pub at: Nanos,
    /// How long it waited.
    pub waited: Nanos,
    /// How it ended.
    pub end: FlightEnd,
    /// The hash of its flow; 0 in a level that does not tell flows apart.
    pub flow_hash: u64,
    /// Who asked for what: its place in the header.
    pub request: u32,
    /// Its level: its place in the header.
    pub level: u16,
    /// The seats that it took.
    pub work: WorkEstimate,
    /// How long it would have waited.
    pub wait_limit: Nanos,
}

/// How a request ended.
///
/// Not `#[non_exhaustive]`: code that reads a dump has to know every end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlightEnd {
    /// The request had not ended when the dump was made.
    Open {
        /// Whether it ran.
        has_started: bool,
    },
    /// The request ran to its end.
    Finished {
        /// How long it ran, in nanoseconds.
        ran: Nanos,
    },
    /// The request was rejected.
    Rejected(Rejection),
}

/// The reasons, by the numbers that they have in a dump.
const REASONS: [Rejection; 6] = [
    Rejection::QueueFull,
    Rejection::ConcurrencyLimit,
    Rejection::TimeOut,
    Rejection::Cancelled,
    Rejection::RateLimit,
    Rejection::TooManyLongRunning,
];

// === impl FlightEnd ===

impl FlightEnd {
    /// As two numbers: a code, and a time.
    pub(super) fn to_parts(self) -> (u8, Nanos) {
        match self {
            Self::Open { has_started } => (u8::from(has_started), 0),
            Self::Finished { ran } => (2, ran),
            Self::Rejected(reason) => (3 + reason_code(reason), 0),
        }
    }

    /// `None` if there is no such code.
    pub(super) fn from_parts(code: u8, ran: Nanos) -> Option<Self> {
        Some(match code {
            0 | 1 => Self::Open { has_started: code == 1 },
            2 => Self::Finished { ran },
            _ => Self::Rejected(reason_of(code - 3)?),
        })
    }
}

/// The number of a reason, in dumps and in records in memory.
pub(crate) fn reason_code(reason: Rejection) -> u8 {
    let place = REASONS.iter().position(|one| *one == reason);
    u8::try_from(place.unwrap_or(0)).unwrap_or(0)
}

/// The reason of that number.
pub(crate) fn reason_of(code: u8) -> Option<Rejection> {
    REASONS.get(usize::from(code)).copied()
}
