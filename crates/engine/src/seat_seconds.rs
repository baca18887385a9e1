//! Seat-seconds: the unit in which progress and work are counted (FQ-1 to FQ-4).

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use crate::time::Nanos;

/// An amount of seats times time, in units of 10 seat-nanoseconds.
///
/// All arithmetic wraps (CV-5): a negative amount is one that takes away when it is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SeatSeconds(u64);

const NANOS_PER_UNIT: f64 = 10.0;
const UNITS_PER_SEAT_SECOND: u64 = 100_000_000;

// === impl SeatSeconds ===

impl SeatSeconds {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(u64::MAX);

    /// So many units of 10 seat-nanoseconds.
    pub const fn from_units(units: u64) -> Self {
        Self(units)
    }

    /// How many units of 10 seat-nanoseconds.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// Seats held for a span of time (FQ-2). A negative span gives an amount that takes away.
    #[inline]
    #[expect(clippy::cast_precision_loss, reason = "FQ-2 asks for binary64")]
    #[expect(clippy::cast_sign_loss, reason = "FQ-2: to i64, and then wrap")]
    pub fn of(seats: f64, span: Nanos) -> Self {
        Self(round((seats * span as f64) / NANOS_PER_UNIT) as u64)
    }

    /// How long that many seats have to be held for this amount (FQ-3).
    #[expect(clippy::cast_precision_loss, reason = "FQ-3 asks for binary64")]
    #[expect(clippy::cast_possible_truncation, reason = "FQ-3: toward zero; no seats at all give the longest span")]
    pub fn span_per_seat(self, seats: f64) -> Nanos {
        ((self.0 as f64 / seats) * NANOS_PER_UNIT) as i64
    }

    /// The amount as a metric shows it (FQ-4).
    #[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / UNITS_PER_SEAT_SECOND as f64
    }
}

/// Rounds half away from zero, as `f64::round` does, which is a call into the mathematical library on processors
/// without an instruction for it. The fraction that is compared is exact: where a number has one, it is small enough.
#[inline]
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "see above")]
fn round(number: f64) -> i64 {
    let whole = number as i64;
    let fraction = number - whole as f64;
    whole.saturating_add(i64::from(fraction >= 0.5)).saturating_sub(i64::from(fraction <= -0.5))
}

impl Add for SeatSeconds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.wrapping_add(other.0))
    }
}

impl AddAssign for SeatSeconds {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for SeatSeconds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.wrapping_sub(other.0))
    }
}

impl SubAssign for SeatSeconds {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl fmt::Display for SeatSeconds {
    /// Decimal with eight digits after the point (FQ-4).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:08}ss", self.0 / UNITS_PER_SEAT_SECOND, self.0 % UNITS_PER_SEAT_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fq_2_products_are_rounded_half_away_from_zero_and_wrap() {
        for (seats, span, units) in [
            (1.0, 3_000_000, 300_000),
            (10.0, 3_000_000, 3_000_000),
            (1.0, 4, 0),
            (1.0, 5, 1),
            (1.0, 14, 1),
            (1.0, 15, 2),
            (0.5, 9, 0),
            (0.5, 10, 1),
            (1.0, -4, 0),
            (1.0, -5, u64::MAX),
            (1.0, -7_000_000, 18_446_744_073_708_851_616),
            (20.0, 5_000_000, 10_000_000),
            (2.5, 123_456_789, 30_864_197),
            (1.0 / 3.0, 1_000_000_000, 33_333_333),
        ] {
            assert_eq!(SeatSeconds::of(seats, span).units(), units, "{seats} seats for {span} ns");
        }
    }

    #[test]
    #[expect(clippy::cast_possible_truncation, reason = "what the standard library makes of it is the measure")]
    fn rounding_is_that_of_the_standard_library() {
        let near_halves = (-2000..2000).flat_map(|n| {
            let half = f64::from(n) / 2.0;
            [half, half.next_up(), half.next_down()]
        });
        let powers = (0..1024).map(|exponent| 1.5 * 2_f64.powi(exponent)).flat_map(|power| [power, -power]);
        for number in near_halves.chain(powers).chain([f64::NAN, f64::INFINITY, f64::MIN, f64::MAX]) {
            assert_eq!(round(number), number.round() as i64, "{number}");
        }
    }

    #[test]
    fn fq_3_quotients_are_cut_off() {
        for (units, seats, span) in
            [(10_000_000, 10.0, 10_000_000), (10_000_000, 3.0, 33_333_333), (6_500_000, 5.0, 13_000_000)]
        {
            assert_eq!(SeatSeconds::from_units(units).span_per_seat(seats), span);
        }
    }

    #[test]
    fn fq_4_amounts_are_written_with_eight_decimals() {
        assert_eq!(SeatSeconds::from_units(300_000).to_string(), "0.00300000ss");
        assert_eq!(SeatSeconds::from_units(12_345_678_901).to_string(), "123.45678901ss");
        assert!((SeatSeconds::from_units(300_000).as_f64() - 0.003).abs() < f64::EPSILON);
    }
}
