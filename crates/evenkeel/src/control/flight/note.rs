//! `FlightNote`: what a dump says of some requests beyond their records: what they cost, the rate of their flow, and what changed while they ran.

use evenkeel_engine::time::Nanos;

use crate::control::events::CostKind;

/// A fact about a request. Most requests have none, so that records stay small.
///
/// Not `#[non_exhaustive]`: recorders make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightNote {
    /// The request: its place among the records.
    pub record: u32,
    /// The fact.
    pub fact: FlightFact,
}

/// What a note says. Times are as those of records.
///
/// Not `#[non_exhaustive]`: code that reads a dump has to know every fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlightFact {
    /// What the request had cost when it ended.
    Cost {
        /// In thousandths of the unit.
        thousandths: u64,
        /// The unit.
        unit: CostKind,
    },
    /// The flow of the request has a rate, and the request came to its level only after that.
    Rate(FlightRate),
    /// The request runs for long.
    LongRunning {
        /// How many other such requests its level had when it arrived.
        others: u32,
    },
    /// The request had other seats from then on.
    Seats {
        /// When.
        at: Nanos,
        /// How many.
        seats: u32,
    },
    /// The flow of the request was charged more seat-time, or less.
    Charge {
        /// When.
        at: Nanos,
        /// In nanoseconds; below zero if it was less.
        seat_time: Nanos,
    },
}

/// What a request asked of the rate of its flow. A request without a record of its rejection for the rate passed.
///
/// Not `#[non_exhaustive]`: recorders make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlightRate {
    /// When the request arrived. The record has the time at which it came to its level, or left before that.
    pub at: Nanos,
    /// The hash of the flow, also where the level does not tell flows apart.
    pub flow: u64,
    /// How much the request took, or would have taken.
    pub amount: u64,
    /// What came of it.
    pub outcome: RateOutcome,
}

/// How a request got past the rate of its flow.
///
/// Not `#[non_exhaustive]`: code that reads a dump has to know every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateOutcome {
    /// Nothing had to be waited for: it passed, or was rejected at once.
    AtOnce,
    /// It waited for the rate, and came to its level then.
    Waited,
    /// It left while it waited for the rate.
    Left,
}

/// The parts of a fact in a dump: kind, detail and two numbers, and a third one.
pub(super) type FactParts = (u8, u8, [u64; 3]);

// === impl FlightFact ===

impl FlightFact {
    pub(super) fn to_parts(self) -> FactParts {
        match self {
            Self::Cost { thousandths, unit } => (0, unit.number(), [0, thousandths, 0]),
            Self::Rate(FlightRate { at, flow, amount, outcome }) => {
                (1, outcome.number(), [at.cast_unsigned(), flow, amount])
            }
            Self::LongRunning { others } => (2, 0, [0, others.into(), 0]),
            Self::Seats { at, seats } => (3, 0, [at.cast_unsigned(), seats.into(), 0]),
            Self::Charge { at, seat_time } => (4, 0, [at.cast_unsigned(), seat_time.cast_unsigned(), 0]),
        }
    }

    /// `None` if there is no such fact.
    pub(super) fn from_parts((kind, detail, [at, number, more]): FactParts) -> Option<Self> {
        let at = at.cast_signed();
        Some(match kind {
            0 => Self::Cost { thousandths: number, unit: CostKind::of_number(detail)? },
            1 => Self::Rate(FlightRate { at, flow: number, amount: more, outcome: RateOutcome::of_number(detail)? }),
            2 => Self::LongRunning { others: u32::try_from(number).ok()? },
            3 => Self::Seats { at, seats: u32::try_from(number).ok()? },
            4 => Self::Charge { at, seat_time: number.cast_signed() },
            _ => return None,
        })
    }

    /// When it was so, if it says that.
    pub(super) fn moment(self) -> Option<Nanos> {
        match self {
            Self::Cost { .. } | Self::LongRunning { .. } => None,
            Self::Rate(FlightRate { at, .. }) | Self::Seats { at, .. } | Self::Charge { at, .. } => Some(at),
        }
    }
}

// === impl RateOutcome ===

impl RateOutcome {
    const ALL: [Self; 3] = [Self::AtOnce, Self::Waited, Self::Left];

    pub(crate) const fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}
