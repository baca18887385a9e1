//! How many seats one request may take (WE-4, WE-5).

/// One request may take this part of its level's nominal seats.
const PART_OF_LEVEL_MAX: f64 = 0.15;

/// The seats that one request may take on a level with queues (WE-4).
///
/// ```
/// use evenkeel_engine::work::level_cap;
///
/// assert_eq!(level_cap(100, 6), 15);
/// assert_eq!(level_cap(5, 6), 1);
/// ```
#[expect(clippy::cast_precision_loss, reason = "WE-4 asks for binary64")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "WE-4 asks for 32 bits, and for 1 at least"
)]
pub fn level_cap(nominal_seats: i64, hand_size: i32) -> u32 {
    let part = (nominal_seats as f64 * PART_OF_LEVEL_MAX).ceil();
    // A hand of no queues is refused with the configuration; here it is no bound.
    let per_queue = (nominal_seats as i32).checked_div(hand_size).map_or(f64::INFINITY, f64::from);
    part.min(per_queue).max(1.0) as u32
}

/// The seats that one request may take (WE-5).
pub(super) fn effective(level_cap: Option<u32>, limit: u32) -> u32 {
    let cap = level_cap.filter(|&cap| cap != 0 && cap <= limit).unwrap_or(limit);
    // With a limit of zero, requests are still served.
    cap.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_4_table() {
        for (nominal_seats, hand_size, cap) in [
            (5, 6, 1),
            (10, 6, 1),
            (15, 6, 2),
            (20, 6, 3),
            (35, 6, 5),
            (100, 6, 15),
            (200, 6, 30),
            (10, 1, 2),
            (100, 20, 5),
        ] {
            assert_eq!(level_cap(nominal_seats, hand_size), cap, "{nominal_seats} seats, hand of {hand_size}");
        }
    }

    #[test]
    fn we_4_odd_numbers_give_one_seat_at_least() {
        for (nominal_seats, hand_size) in [(0, 6), (-1, 6), (i64::MIN, -1), (i64::from(i32::MIN), -1), (1 << 31, 6)] {
            assert_eq!(level_cap(nominal_seats, hand_size), 1, "{nominal_seats} seats, hand of {hand_size}");
        }
        assert_eq!(level_cap(100, 0), 15);
    }

    #[test]
    fn we_5_effective_maximum() {
        for (level_cap, limit, max) in
            [(None, 10, 10), (Some(0), 10, 10), (Some(3), 10, 3), (Some(10), 10, 10), (Some(11), 10, 10)]
        {
            assert_eq!(effective(level_cap, limit), max);
        }
    }
}
