//! What is known of a request beyond its arrival: the rate of its flow, and that it runs for long. Few requests have any of it.

use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::Instant;

use super::records::ARRIVAL_WORDS;
use crate::control::flight::{FlightFact, FlightRate, RateOutcome};
use crate::control::level_names::LevelKey;

/// What is known of the request that this thread lets arrive next.
#[derive(Debug, Clone, Copy)]
pub(super) struct PendingNotes {
    /// The hash of its flow: another request that comes between must not have its notes.
    pub(super) flow_hash: u64,
    pub(super) rate: Option<FlightRate>,
    /// How many other long-running requests its level has, if it is one.
    pub(super) others: Option<u32>,
}

/// A note in the ring of arrivals, beside the arrival of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArrivalNote {
    /// When the request came to its level.
    pub(super) at: Instant,
    /// The request, or the number of one that was rejected at once.
    pub(super) id: Result<RequestId, u64>,
    pub(super) level: LevelKey,
    pub(super) fact: FlightFact,
}

/// The last bits of the word in which arrivals have seats and a code: no arrival has this code.
const MARK: u64 = 0xFF << 56;
const AMOUNT: u64 = !MARK;
/// The bits of the word beside the level.
const IS_REJECTED: u64 = 1 << 31;
const IS_LONG_RUNNING: u64 = 1 << 30;

// === impl PendingNotes ===

impl PendingNotes {
    pub(super) fn new(flow_hash: u64) -> Self {
        Self { flow_hash, rate: None, others: None }
    }

    pub(super) fn facts(self) -> impl Iterator<Item = FlightFact> {
        let rate = self.rate.map(FlightFact::Rate);
        rate.into_iter().chain(self.others.map(|others| FlightFact::LongRunning { others }))
    }
}

// === impl ArrivalNote ===

impl ArrivalNote {
    /// Facts that do not come with an arrival are as those of no rate.
    pub(super) fn to_words(self) -> [u64; ARRIVAL_WORDS] {
        let (id, flag) = match self.id {
            Ok(id) => (id.to_bits(), 0),
            Err(number) => (number, IS_REJECTED),
        };
        let (kind, [flow, amount, at]) = match self.fact {
            FlightFact::Rate(FlightRate { at, flow, amount, outcome }) => {
                (u64::from(outcome.number()), [flow, amount.min(AMOUNT), at.cast_unsigned()])
            }
            FlightFact::LongRunning { others } => (IS_LONG_RUNNING, [0, others.into(), 0]),
            FlightFact::Cost { .. } | FlightFact::Seats { .. } | FlightFact::Charge { .. } => (0, [0; 3]),
        };
        let places = kind | flag | u64::from(self.level.to_bits()) << 32;
        [self.at.as_nanos().cast_unsigned(), id, places, flow, MARK | amount, at]
    }

    /// `None` if it is an arrival.
    #[expect(clippy::cast_possible_truncation, reason = "parts of words")]
    pub(super) fn from_words([at, id, places, flow, amount, since]: [u64; ARRIVAL_WORDS]) -> Option<Self> {
        if amount & MARK != MARK {
            return None;
        }
        let amount = amount & AMOUNT;
        let fact = if places & IS_LONG_RUNNING != 0 {
            FlightFact::LongRunning { others: amount as u32 }
        } else {
            let outcome = RateOutcome::of_number(places as u8).unwrap_or(RateOutcome::AtOnce);
            FlightFact::Rate(FlightRate { at: since.cast_signed(), flow, amount, outcome })
        };
        Some(Self {
            at: Instant::from_nanos(at.cast_signed()),
            id: if places & IS_REJECTED == 0 { Ok(RequestId::from_bits(id)) } else { Err(id) },
            level: LevelKey::from_bits((places >> 32) as u32),
            fact,
        })
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::WorkEstimate;
    use evenkeel_engine::queue_set::Rejection;

    use super::super::records::ArrivalRecord;
    use super::*;

    #[test]
    fn notes_are_read_as_they_were_written_and_arrivals_are_none() {
        let rate = FlightRate { at: -5, flow: u64::MAX, amount: 7, outcome: RateOutcome::Left };
        for fact in [FlightFact::Rate(rate), FlightFact::LongRunning { others: u32::MAX }] {
            for id in [Ok(RequestId::from_bits(9)), Err(10)] {
                let level = LevelKey::from_bits(u32::MAX);
                let note = ArrivalNote { at: Instant::from_nanos(11), id, level, fact };
                assert_eq!(ArrivalNote::from_words(note.to_words()), Some(note));
            }
        }
        let arrival = ArrivalRecord {
            at: Instant::from_nanos(1),
            id: Err(Rejection::TooManyLongRunning),
            number: 2,
            level: LevelKey::from_bits(3),
            request: 4,
            flow_hash: 5,
            work: WorkEstimate::seats(u32::MAX),
            wait_limit: 6,
        };
        assert_eq!(ArrivalNote::from_words(arrival.to_words()), None);
    }
}
