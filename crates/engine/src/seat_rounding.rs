//! Whole seats to binary64 and back: the two conversions of the limit formulas (CV-2).

/// The binary64 nearest to a number of seats.
#[expect(clippy::cast_precision_loss, reason = "the formulas ask for binary64")]
pub(crate) const fn to_f64(seats: i64) -> f64 {
    seats as f64
}

/// To the nearest whole number of seats, halves away from zero.
///
/// A value out of range becomes the largest or smallest number, and NaN becomes zero.
pub(crate) fn round(seats: f64) -> i64 {
    truncate(seats.round())
}

/// To the next whole number of seats, with the same care for what is out of range.
pub(crate) fn round_up(seats: f64) -> i64 {
    truncate(seats.ceil())
}

#[expect(clippy::cast_possible_truncation, reason = "whole already, and the conversion saturates")]
const fn truncate(seats: f64) -> i64 {
    seats as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cv_2_halves_are_rounded_away_from_zero() {
        for (seats, rounded, up) in [(0.5, 1, 1), (1.5, 2, 2), (2.5, 3, 3), (2.4, 2, 3), (-0.5, -1, 0), (-2.4, -2, -2)]
        {
            assert_eq!((round(seats), round_up(seats)), (rounded, up), "{seats}");
        }
    }

    #[test]
    fn cv_2_nothing_is_out_of_range() {
        for (seats, expected) in [
            (1e300, i64::MAX),
            (-1e300, i64::MIN),
            (f64::INFINITY, i64::MAX),
            (f64::NEG_INFINITY, i64::MIN),
            (f64::NAN, 0),
        ] {
            assert_eq!((round(seats), round_up(seats)), (expected, expected), "{seats}");
        }
    }
}
