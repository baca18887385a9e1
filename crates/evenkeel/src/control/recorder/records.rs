//! The records of the flight recorder in memory: for each request an arrival of 48 bytes, and two events of 24 bytes; more where costs count.

use crate::control::events::CostKind;
use crate::control::flight::{reason_code, reason_of};
use crate::control::level_names::LevelKey;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

/// A request that has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArrivalRecord {
    pub(crate) at: Instant,
    /// The id of the request in its events, or why it was rejected at once.
    pub(crate) id: Result<RequestId, Rejection>,
    /// The number by which notes name a request that was rejected at once; 0 if there are none.
    pub(crate) number: u64,
    pub(crate) level: LevelKey,
    /// Who asks for what: see [`Requests`](super::requests::Requests).
    pub(crate) request: u32,
    pub(crate) flow_hash: u64,
    pub(crate) work: WorkEstimate,
    pub(crate) wait_limit: Nanos,
}

/// An event of a request: its start or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EventRecord {
    pub(crate) id: RequestId,
    pub(crate) level: LevelKey,
    pub(crate) what: Happened,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    Started {
        waited: Nanos,
    },
    GaveUp {
        waited: Nanos,
        reason: Rejection,
    },
    Finished {
        ran: Nanos,
    },
    /// It has other seats from then on.
    Resized {
        at: Nanos,
        seats: u32,
    },
    /// The charge that follows happened then.
    ChargedAt {
        at: Nanos,
    },
    Charged {
        seat_time: Nanos,
    },
    Costed {
        thousandths: u64,
        unit: CostKind,
    },
}

pub(crate) const ARRIVAL_WORDS: usize = 6;
pub(crate) const EVENT_WORDS: usize = 3;

/// The codes of events that few requests have, after those of the reasons.
const RESIZED: u64 = 0x20;
const CHARGED_AT: u64 = 0x21;
const CHARGED: u64 = 0x22;
const COSTED: u64 = 0x23;

/// Times that need not be exact are kept in microseconds, up to an hour.
const MICROSECOND: Nanos = 1_000;
/// The lower half of a word.
const HALF: u64 = 0xFFFF_FFFF;

// === impl ArrivalRecord ===

impl ArrivalRecord {
    #[inline]
    pub(crate) fn to_words(self) -> [u64; ARRIVAL_WORDS] {
        let WorkEstimate { initial_seats, final_seats, additional_latency } = self.work;
        let (id, code) = match self.id {
            Ok(id) => (id, 0),
            Err(reason) => (RequestId::from_bits(self.number), u64::from(reason_code(reason)) + 1),
        };
        let seats = |seats: u32| u64::from(seats.min(0xFF_FFFF));
        [
            self.at.as_nanos().cast_unsigned(),
            id.to_bits(),
            u64::from(self.request) | u64::from(self.level.to_bits()) << 32,
            self.flow_hash,
            seats(initial_seats) | seats(final_seats) << 24 | code << 56,
            micros(self.wait_limit) | micros(additional_latency) << 32,
        ]
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of words")]
    pub(crate) fn from_words([at, id, places, flow_hash, seats, times]: [u64; ARRIVAL_WORDS]) -> Self {
        let code = (seats >> 56) as u8;
        let (id, number) = match code.checked_sub(1).and_then(reason_of) {
            Some(reason) => (Err(reason), id),
            None => (Ok(RequestId::from_bits(id)), 0),
        };
        Self {
            at: Instant::from_nanos(at.cast_signed()),
            id,
            number,
            level: LevelKey::from_bits((places >> 32) as u32),
            request: places as u32,
            flow_hash,
            work: WorkEstimate {
                initial_seats: seats as u32 & 0xFF_FFFF,
                final_seats: (seats >> 24) as u32 & 0xFF_FFFF,
                additional_latency: nanos(times >> 32),
            },
            wait_limit: nanos(times & HALF),
        }
    }
}

#[inline]
fn micros(time: Nanos) -> u64 {
    // Unsigned numbers are divided by a multiplication alone.
    (time.max(0).cast_unsigned() / MICROSECOND.cast_unsigned()).min(HALF)
}

fn nanos(micros: u64) -> Nanos {
    Nanos::try_from(micros).unwrap_or(0) * MICROSECOND
}

// === impl EventRecord ===

impl EventRecord {
    #[inline]
    pub(crate) fn to_words(self) -> [u64; EVENT_WORDS] {
        // The second number has room for 24 bits.
        let (what, more, time) = match self.what {
            Happened::Started { waited } => (0_u64, 0, waited),
            Happened::Finished { ran } => (1, 0, ran),
            Happened::GaveUp { waited, reason } => (2 + u64::from(reason_code(reason)), 0, waited),
            Happened::Resized { at, seats } => (RESIZED, seats.min(0xFF_FFFF), at),
            Happened::ChargedAt { at } => (CHARGED_AT, 0, at),
            Happened::Charged { seat_time } => (CHARGED, 0, seat_time),
            Happened::Costed { thousandths, unit } => (COSTED, unit.number().into(), thousandths.cast_signed()),
        };
        let what = what << 32 | u64::from(more) << 40;
        [self.id.to_bits(), u64::from(self.level.to_bits()) | what, time.cast_unsigned()]
    }

    #[expect(clippy::cast_possible_truncation, reason = "parts of words")]
    pub(crate) fn from_words([id, what, time]: [u64; EVENT_WORDS]) -> Self {
        let (time, more) = (time.cast_signed(), (what >> 40) as u32);
        let happened = match what >> 32 & 0xFF {
            0 => Happened::Started { waited: time },
            1 => Happened::Finished { ran: time },
            RESIZED => Happened::Resized { at: time, seats: more },
            CHARGED_AT => Happened::ChargedAt { at: time },
            CHARGED => Happened::Charged { seat_time: time },
            COSTED => {
                let unit = CostKind::of_number(more as u8).unwrap_or(CostKind::Units);
                Happened::Costed { thousandths: time.cast_unsigned(), unit }
            }
            code => {
                let reason = reason_of((code - 2) as u8).unwrap_or(Rejection::Cancelled);
                Happened::GaveUp { waited: time, reason }
            }
        };
        Self { id: RequestId::from_bits(id), level: LevelKey::from_bits(what as u32), what: happened }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written() {
        let arrival = ArrivalRecord {
            at: Instant::from_nanos(123_456_789),
            id: Ok(RequestId::from_bits(0x0102_0304_0506_0708)),
            number: 0,
            level: LevelKey::from_bits(3 << 16 | 5),
            request: u32::MAX,
            flow_hash: 9,
            work: WorkEstimate { initial_seats: 7, final_seats: 2, additional_latency: 5_000_000 },
            wait_limit: 15_000_000_000,
        };
        assert_eq!(ArrivalRecord::from_words(arrival.to_words()), arrival);
        let refused = ArrivalRecord { id: Err(Rejection::RateLimit), number: 77, ..arrival };
        assert_eq!(ArrivalRecord::from_words(refused.to_words()), refused);
        for what in [
            Happened::Started { waited: 5 },
            Happened::GaveUp { waited: 6, reason: Rejection::TimeOut },
            Happened::Finished { ran: 7 },
            Happened::Resized { at: 8, seats: 0xFF_FFFF },
            Happened::ChargedAt { at: 9 },
            Happened::Charged { seat_time: -10 },
            Happened::Costed { thousandths: u64::MAX, unit: CostKind::Tokens },
        ] {
            let event = EventRecord { id: RequestId::from_bits(4), level: LevelKey::from_bits(u32::MAX), what };
            assert_eq!(EventRecord::from_words(event.to_words()), event);
        }
    }
}
