//! The records that requests and levels send to a shadow: a few words each, through [rings](crate::control::ring).

use crate::control::level_names::LevelKey;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

/// A request that has arrived, and where the shadow's configuration puts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrivalRecord {
    pub(crate) at: Instant,
    /// `NONE` if it was rejected at once.
    pub(crate) id: RequestId,
    /// The level that it belongs to.
    pub(crate) level: LevelKey,
    /// A key of its flow under both configurations, which the report has a row for.
    pub(crate) key: u64,
    /// Its flow schema, its flow and its work under the shadow's configuration.
    pub(crate) schema: u32,
    pub(crate) flow_hash: u64,
    pub(crate) work: WorkEstimate,
    pub(crate) wait_limit: Nanos,
    pub(crate) is_long_running: bool,
    /// Whether only the shadow decides about it.
    pub(crate) is_observed: bool,
}

/// An event of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventRecord {
    pub(crate) id: RequestId,
    /// The level that it is in, or [`OBSERVED`].
    pub(crate) level: LevelKey,
    pub(crate) what: Happened,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The request started after it had waited for so long.
    Started { waited: Nanos },
    /// The request was rejected after it had waited for so long.
    Rejected { waited: Nanos },
    /// The client left after the request had waited for so long.
    Left { waited: Nanos },
    /// The request ended after it had run for so long.
    Finished { ran: Nanos },
}

/// The level in events of requests that only the shadow decides about.
pub(crate) const OBSERVED: LevelKey = LevelKey::from_bits(u32::MAX);

pub(crate) const ARRIVAL_WORDS: usize = 8;
pub(crate) const EVENT_WORDS: usize = 3;

/// Seats have so many bits in a record. No level has more.
const SEAT_BITS: u32 = 24;
const SEATS_MAX: u32 = (1 << SEAT_BITS) - 1;
const LONG_RUNNING: u64 = 1 << (2 * SEAT_BITS);
const IS_OBSERVED: u64 = LONG_RUNNING << 1;

// === impl ArrivalRecord ===

impl ArrivalRecord {
    #[inline]
    pub(crate) fn to_words(self) -> [u64; ARRIVAL_WORDS] {
        let WorkEstimate { initial_seats, final_seats, additional_latency } = self.work;
        let seats = |seats: u32| u64::from(seats.min(SEATS_MAX));
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let flags = flag(self.is_long_running, LONG_RUNNING) | flag(self.is_observed, IS_OBSERVED);
        [
            self.at.as_nanos().cast_unsigned(),
            self.id.to_bits(),
            u64::from(self.level.to_bits()) | u64::from(self.schema) << 32,
            self.key,
            self.flow_hash,
            self.wait_limit.cast_unsigned(),
            seats(initial_seats) | seats(final_seats) << SEAT_BITS | flags,
            additional_latency.cast_unsigned(),
        ]
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of words")]
    pub(crate) fn from_words(words: [u64; ARRIVAL_WORDS]) -> Self {
        let [at, id, places, key, flow_hash, wait_limit, seats, additional_latency] = words;
        Self {
            at: Instant::from_nanos(at.cast_signed()),
            id: RequestId::from_bits(id),
            level: LevelKey::from_bits(places as u32),
            key,
            schema: (places >> 32) as u32,
            flow_hash,
            work: WorkEstimate {
                initial_seats: seats as u32 & SEATS_MAX,
                final_seats: (seats >> SEAT_BITS) as u32 & SEATS_MAX,
                additional_latency: additional_latency.cast_signed(),
            },
            wait_limit: wait_limit.cast_signed(),
            is_long_running: seats & LONG_RUNNING != 0,
            is_observed: seats & IS_OBSERVED != 0,
        }
    }

    /// The level that its events have.
    pub(crate) fn event_level(&self) -> LevelKey {
        if self.is_observed { OBSERVED } else { self.level }
    }
}

// === impl EventRecord ===

impl EventRecord {
    #[inline]
    pub(crate) fn to_words(self) -> [u64; EVENT_WORDS] {
        let (what, time) = match self.what {
            Happened::Started { waited } => (0, waited),
            Happened::Rejected { waited } => (1, waited),
            Happened::Left { waited } => (2, waited),
            Happened::Finished { ran } => (3_u64, ran),
        };
        [self.id.to_bits(), u64::from(self.level.to_bits()) | what << 32, time.cast_unsigned()]
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of words")]
    pub(crate) fn from_words([id, what, time]: [u64; EVENT_WORDS]) -> Self {
        let time = time.cast_signed();
        let happened = match what >> 32 {
            0 => Happened::Started { waited: time },
            1 => Happened::Rejected { waited: time },
            2 => Happened::Left { waited: time },
            _ => Happened::Finished { ran: time },
        };
        Self { id: RequestId::from_bits(id), level: LevelKey::from_bits(what as u32), what: happened }
    }
}

// === impl Happened ===

impl Happened {
    /// A request that waited was rejected for this reason.
    pub(crate) fn gave_up(waited: Nanos, reason: Rejection) -> Self {
        if reason == Rejection::Cancelled { Self::Left { waited } } else { Self::Rejected { waited } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let arrival = ArrivalRecord {
            at: Instant::from_nanos(-7),
            id: RequestId::from_bits(0x0102_0304_0506_0708),
            level: LevelKey::from_bits(3 << 16 | 5),
            key: u64::MAX,
            schema: u32::MAX,
            flow_hash: 9,
            work: WorkEstimate { initial_seats: SEATS_MAX, final_seats: 2, additional_latency: -1 },
            wait_limit: i64::MAX,
            is_long_running: true,
            is_observed: false,
        };
        assert_eq!(ArrivalRecord::from_words(arrival.to_words()), arrival);
        let other = ArrivalRecord { is_long_running: false, is_observed: true, id: RequestId::NONE, ..arrival };
        assert_eq!(ArrivalRecord::from_words(other.to_words()), other);
        for what in [
            Happened::Started { waited: 5 },
            Happened::gave_up(6, Rejection::TimeOut),
            Happened::gave_up(7, Rejection::Cancelled),
            Happened::Finished { ran: -1 },
        ] {
            let event = EventRecord { id: arrival.id, level: LevelKey::from_bits(4), what };
            assert_eq!(EventRecord::from_words(event.to_words()), event);
        }
    }
}
