//! `Event`: something that happened in a level.

use std::time::Duration;

use evenkeel_api::annotations::CostUnit;
use evenkeel_engine::queue_set::{Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

/// Something that happened in a level: to one of its requests, or to the level itself.
///
/// A request arrives ([`Passed`](EventKind::Passed), [`Arrived`](EventKind::Arrived) or [`Refused`](EventKind::Refused)); if it has
/// to wait, it [starts](EventKind::Started) or [gives up](EventKind::GaveUp) later; if it has started, it
/// [finishes](EventKind::Finished), and if it lingers, its seats are [released](EventKind::Released) after that.
///
/// What one call brought about, such as the end of a request and the start of the next, are several events with the same time. They
/// come together, and [`is_last`](Self::is_last) is true for the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub(crate) at: Instant,
    pub(crate) id: RequestId,
    /// The number of the request's flow schema in the level.
    pub(crate) series: u32,
    pub(crate) seats: u32,
    pub(crate) kind: EventKind,
    pub(crate) level: LevelNumbers,
}

/// Which request an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventSubject {
    pub(crate) id: RequestId,
    /// The number of its flow schema in the level.
    pub(crate) series: u32,
    pub(crate) seats: u32,
}

/// How a running request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum RunEnd {
    /// The service has done what was asked, as far as anybody knows.
    #[default]
    Done,
    /// The client has left before there was a response: nobody knows whether the service would have done it.
    Left,
    /// The request has [failed](crate::Permit::mark_failed): its time says little about the service.
    Failed,
    /// The request was [told to end](crate::Permit::revoked), because another level needs its own seats.
    Revoked,
}

/// The unit of the cost of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CostKind {
    /// Seconds for which it runs.
    Seconds,
    /// Bytes of its response.
    Bytes,
    /// A number that the service reports.
    Units,
    /// Tokens of a language model.
    Tokens,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// A request arrived, and started at once.
    Passed {
        /// The hash of its flow; 0 in a level that does not tell flows apart.
        flow: u64,
        /// The length of the queue that it came through, itself included; `u32::MAX` if it came through none.
        queue_length: u32,
        /// Whether the level has no limit, so that nothing ever waits.
        is_exempt: bool,
    },
    /// A request arrived, and waits; or it has to have fewer seats than it asked for, and starts with the next event.
    Arrived {
        /// The hash of its flow; 0 in a level that does not tell flows apart.
        flow: u64,
        /// The length of the queue that it came into, itself included; `u32::MAX` if it came into none.
        queue_length: u32,
        /// Whether it waits.
        waits: bool,
    },
    /// A request arrived, and was rejected at once.
    Refused {
        /// The hash of its flow; 0 in a level that does not tell flows apart.
        flow: u64,
        /// Why.
        reason: Rejection,
    },
    /// The request that arrives next concerns so many watches (WE-18).
    Watches {
        /// The number of watches.
        count: u64,
    },
    /// A request that had arrived started.
    Started {
        /// How long it had waited, in nanoseconds.
        waited: Nanos,
        /// Whether it had been in a queue.
        was_queued: bool,
        /// Whether the level has no limit, so that nothing ever waits.
        is_exempt: bool,
    },
    /// A waiting request was rejected.
    GaveUp {
        /// How long it had waited, in nanoseconds.
        waited: Nanos,
        /// Why.
        reason: Rejection,
        /// Whether it gave way to another one (PF-7).
        is_displaced: bool,
    },
    /// The handler of a request has returned.
    Finished {
        /// How long it ran, in nanoseconds.
        ran: Nanos,
        /// Whether it keeps its seats for a while; they are `Released` then.
        lingers: bool,
        /// Whether it is a watch, whose execution is only its beginning (HF-9).
        is_watch: bool,
        /// How it ended.
        end: RunEnd,
    },
    /// A request that has lingered gave its seats back.
    Released,
    /// A request that runs has other seats from now on: those of the event.
    Resized {
        /// The seats that it had.
        before: u32,
    },
    /// The flow of a request that runs was charged more seat-time, or less.
    Charged {
        /// In nanoseconds; below zero if it was less.
        seat_time: Nanos,
    },
    /// A request whose cost counts has come to its end, and has cost so much.
    Costed {
        /// In thousandths of the unit.
        cost: u64,
        /// What it was expected to cost, in thousandths of what it cost.
        expected_per_mille: u32,
        /// What the cost is counted in.
        unit: CostKind,
    },
    /// The request that is next needs more seats than are free, and all others wait for it (FQ-23).
    Blocked,
    /// The progress meter of the level was wound back (FQ-13).
    MeterWoundBack {
        /// Whether nothing went below zero by it.
        is_clean: bool,
    },
    /// The level has another configuration, or other seats.
    Reconfigured,
}

/// A level after an event, and after everything that happened with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LevelNumbers {
    /// The seats that waiting requests ask for, with the surplus of FQ-24.
    pub seats_waiting: i64,
    /// The seats of requests that run or linger.
    pub seats_in_use: u32,
    /// How many requests run; those that linger do not.
    pub executing: u32,
    /// How many requests wait.
    pub waiting: u32,
    /// Whether requests wait, or would be rejected for want of a seat.
    pub is_saturated: bool,
    /// Whether requests that find no seat may wait.
    pub has_queues: bool,
    pub(crate) is_last: bool,
}

/// The length of the queue of a request that came through none.
pub(crate) const NO_QUEUE: u32 = u32::MAX;

// === impl RunEnd ===

impl RunEnd {
    /// The number of it; a worse end has a higher one.
    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) const fn of_number(number: u8) -> Self {
        match number {
            0 => Self::Done,
            1 => Self::Left,
            2 => Self::Failed,
            _ => Self::Revoked,
        }
    }
}

// === impl CostKind ===

impl CostKind {
    const ALL: [Self; 4] = [Self::Seconds, Self::Bytes, Self::Units, Self::Tokens];

    /// The kind of this unit.
    pub fn of(unit: &CostUnit) -> Self {
        match unit {
            CostUnit::Time => Self::Seconds,
            CostUnit::Bytes => Self::Bytes,
            CostUnit::Header { .. } => Self::Units,
            CostUnit::Tokens => Self::Tokens,
        }
    }

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The one with this [name](Self::noun).
    pub fn of_noun(noun: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.noun() == noun)
    }

    /// The name of so many of them, as in "412 bytes".
    pub fn noun(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Bytes => "bytes",
            Self::Units => "units",
            Self::Tokens => "tokens",
        }
    }
}

impl EventKind {
    /// A request has cost so much, and was expected to cost so much.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such casts stay within bounds")]
    pub(crate) fn costed(unit: CostKind, cost: f64, expected: f64) -> Self {
        let per_mille = if cost > 0.0 { (1000.0 * expected / cost) as u32 } else { 0 };
        Self::Costed { cost: (1000.0 * cost) as u64, expected_per_mille: per_mille, unit }
    }
}

// === impl Event ===

impl Event {
    #[inline]
    pub(crate) fn new(at: Instant, subject: EventSubject, kind: EventKind, level: LevelNumbers) -> Self {
        let EventSubject { id, series, seats } = subject;
        Self { at, id, series, seats, kind, level }
    }

    /// When it happened, by the clock of the flow control: see [`FlowControl::clock_start`](crate::FlowControl::clock_start).
    pub fn at(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.at.as_nanos()).unwrap_or(0))
    }

    /// The request that it is about; `None` if it is about the level, or about a request that never got a place in it.
    pub fn request(&self) -> Option<RequestId> {
        Some(self.id).filter(|id| *id != RequestId::NONE)
    }

    /// The number of the request's flow schema in its level. A schema keeps its number for as long as there is a level of that name.
    pub fn schema(&self) -> u32 {
        self.series
    }

    /// The seats of the request.
    pub fn seats(&self) -> u32 {
        self.seats
    }

    /// The kind of the event.
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// The state of the level afterwards. All events of one call have the same numbers.
    pub fn level(&self) -> LevelNumbers {
        self.level
    }

    /// Whether it is the last event of one call: the next one is of another.
    pub fn is_last(&self) -> bool {
        self.level.is_last
    }
}

// === impl EventSubject ===

impl EventSubject {
    /// The level itself.
    pub(crate) const LEVEL: Self = Self { id: RequestId::NONE, series: u32::MAX, seats: 0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two of them are written for each request, while the lock of its level is held.
    #[test]
    fn an_event_is_one_cache_line() {
        assert_eq!(size_of::<Event>(), 64);
    }
}
