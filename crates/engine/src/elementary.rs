//! `exp` and `ln` with the same bits on every machine.
//!
//! The functions of the standard library come from the C library of the platform, and their last bits differ. These use only
//! operations that IEEE 754 defines exactly, in a fixed order, so that a simulation gives the same result everywhere.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// `LN_2` in two parts: a multiple of the first by a whole number below 2^20 is exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Beyond this, the result is zero or infinite anyway.
const EXPONENT_MAX: f64 = 746.0;

/// `e` to the power of a number. The error is a few units in the last place.
///
/// ```
/// use evenkeel_engine::elementary::exp;
///
/// assert_eq!((exp(0.0), exp(-800.0), exp(800.0)), (1.0, 0.0, f64::INFINITY));
/// assert!((exp(1.0) - std::f64::consts::E).abs() < 1e-15);
/// ```
#[expect(clippy::cast_possible_truncation, reason = "at most 1077 in size")]
pub fn exp(power: f64) -> f64 {
    if power.is_nan() {
        return power;
    }
    let power = power.clamp(-EXPONENT_MAX, EXPONENT_MAX);
    let twos = (power * LOG2_E).round();
    let rest = (power - twos * LN_2_HIGH) - twos * LN_2_LOW;
    // The series converges fast: the rest is at most 0.35 in size.
    let mut sum = 1.0;
    for term in (1..=14).rev() {
        sum = 1.0 + sum * rest / f64::from(term);
    }
    // In two steps, since half of the power is in range where all of it may not be.
    let half = twos as i32 / 2;
    sum * power_of_two(half) * power_of_two(twos as i32 - half)
}

/// The natural logarithm of a number. The error is a few units in the last place. Not a number for numbers below zero.
///
/// ```
/// use evenkeel_engine::elementary::ln;
///
/// assert_eq!((ln(1.0), ln(0.0)), (0.0, f64::NEG_INFINITY));
/// assert!((ln(10.0) - std::f64::consts::LN_10).abs() < 1e-15);
/// ```
pub fn ln(number: f64) -> f64 {
    if number == 0.0 {
        return f64::NEG_INFINITY;
    }
    if number.is_nan() || number < 0.0 {
        return f64::NAN;
    }
    if number.is_infinite() {
        return number;
    }
    // Numbers that are too small for a full mantissa get one.
    let (number, shift) = if number < f64::MIN_POSITIVE { (number * power_of_two(60), 60.0) } else { (number, 0.0) };
    let bits = number.to_bits();
    let mut twos = f64::from(u16::try_from(bits >> 52).unwrap_or_default()) - 1023.0 - shift;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > SQRT_2 {
        mantissa /= 2.0;
        twos += 1.0;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)); the argument is at most 0.172 in size.
    let ratio = (mantissa - 1.0) / (mantissa + 1.0);
    let square = ratio * ratio;
    let mut sum = 0.0;
    for odd in (0..=11).rev().map(|term| f64::from(2 * term + 1)) {
        sum = sum * square + 1.0 / odd;
    }
    twos * LN_2 + 2.0 * ratio * sum
}

/// Two to that power, which must be that of an ordinary number.
fn power_of_two(power: i32) -> f64 {
    f64::from_bits(u64::try_from(power + 1023).unwrap_or_default() << 52)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn are_near(one: f64, other: f64) -> bool {
        ((one - other) / other).abs() < 4e-15 || (one - other).abs() < 1e-15
    }

    proptest! {
        #[test]
        fn exp_is_near_that_of_the_platform(power in -700.0..700.0_f64) {
            prop_assert!(are_near(exp(power), power.exp()), "{} {}", exp(power), power.exp());
        }

        #[test]
        fn ln_is_near_that_of_the_platform(number in prop::num::f64::POSITIVE) {
            prop_assert!(are_near(ln(number), number.ln()), "{} {}", ln(number), number.ln());
        }
    }

    #[test]
    fn bits_are_fixed() {
        let exps = [-20.0, -0.1, 0.3, 5.5, 100.0].map(|power| exp(power).to_bits());
        let lns = [1e-300, 0.001, 0.7, 1.5, 123.456].map(|number| ln(number).to_bits());
        assert_eq!((exps, lns), (EXP_BITS, LN_BITS));
    }

    const EXP_BITS: [u64; 5] = [
        0x3e21_b486_55f3_7267,
        0x3fec_f46d_99d5_2b3a,
        0x3ff5_9905_8c8c_1a96,
        0x406e_9624_4f21_bbf6,
        0x48f3_494a_9b17_1bf5,
    ];
    const LN_BITS: [u64; 5] = [
        0xc085_9634_47f8_7fb5,
        0xc01b_a18a_998f_ffa0,
        0xbfd6_d3c3_24e1_3f4f,
        0x3fd9_f323_ecbf_984c,
        0x4013_4377_4f3e_2362,
    ];

    #[test]
    fn odd_arguments() {
        assert!(exp(f64::NAN).is_nan() && ln(f64::NAN).is_nan() && ln(-1.0).is_nan());
        assert_eq!((exp(f64::NEG_INFINITY), ln(f64::INFINITY)), (0.0, f64::INFINITY));
        assert!(ln(5e-324) < -744.0);
    }
}
