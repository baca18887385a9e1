//! Seats shared out so that they add up to those of the server.

use evenkeel_api::v1::PriorityLevelConfigurationSpec;

use super::{LevelLimits, LevelShare, borrowing_limit_percent, is_exempt, lendable_percent, percent_of, shares};

/// The limits of levels whose own seats add up to those of the server, in the same order.
///
/// Seats go by shares, and those that are left over go to the largest remainders, and then to those that come first: give levels
/// in ascending byte order of their names, as [`SeatPlan`](crate::controller::SeatPlan) does. A limited level with shares has one
/// seat at least if there are enough. A level that no request can get to has none. A limited one without shares has none and
/// borrows none, so that it starts nothing (LB-2a).
///
/// ```
/// use evenkeel_api::v1::PriorityLevelConfiguration;
/// use evenkeel_engine::limits::{LevelShare, exact_limits};
///
/// let levels = [30, 30, 40, 1, 0].map(|shares| {
///     PriorityLevelConfiguration::builder("some").limited(|l| l.shares(shares).reject()).build()
/// });
/// let shares = levels.each_ref().map(|level| LevelShare { spec: &level.spec, is_unreachable: false });
/// let nominal: Vec<_> = exact_limits(&shares, 8).iter().map(|limits| limits.nominal).collect();
/// assert_eq!(nominal, [2, 2, 3, 1, 0]);
/// ```
pub fn exact_limits(levels: &[LevelShare<'_>], server_limit: i64) -> Vec<LevelLimits> {
    let server_limit = server_limit.max(0);
    let nominal = nominal_seats(levels, server_limit);
    levels.iter().zip(nominal).map(|(level, nominal)| limits(level, nominal, server_limit)).collect()
}

fn limits(level: &LevelShare<'_>, nominal: i64, server_limit: i64) -> LevelLimits {
    let spec = level.spec;
    let lendable = percent_of(nominal, lendable_percent(spec)).clamp(0, nominal);
    let borrowing = if level.is_unreachable || is_blocked(spec) {
        0
    } else {
        borrowing_limit_percent(spec).map_or(server_limit, |percent| percent_of(nominal, percent).max(0))
    };
    LevelLimits::of(nominal, lendable, borrowing)
}

/// Whether the level's only purpose is to reject all requests, whether it queues or not.
fn is_blocked(spec: &PriorityLevelConfigurationSpec) -> bool {
    shares(spec) <= 0 && !is_exempt(spec)
}

/// Each level's own seats: by largest remainder, and none of the limited ones empty-handed if that can be.
fn nominal_seats(levels: &[LevelShare<'_>], server_limit: i64) -> Vec<i64> {
    let shares = |level: &LevelShare<'_>| if level.is_unreachable { 0 } else { i128::from(shares(level.spec).max(0)) };
    let all: i128 = levels.iter().map(shares).sum();
    if all == 0 {
        return vec![0; levels.len()];
    }
    // At most the server's seats, which are an `i64`.
    let whole = |level| i64::try_from(i128::from(server_limit) * shares(level) / all).unwrap_or(0);
    let mut seats: Vec<i64> = levels.iter().map(whole).collect();
    let left_over = usize::try_from(server_limit - seats.iter().sum::<i64>()).unwrap_or(0);
    let mut by_remainder: Vec<usize> = (0..levels.len()).collect();
    by_remainder.sort_by_key(|&index| std::cmp::Reverse(i128::from(server_limit) * shares(&levels[index]) % all));
    for &index in by_remainder.iter().take(left_over) {
        seats[index] += 1;
    }
    for index in 0..levels.len() {
        if seats[index] == 0 && shares(&levels[index]) > 0 && !is_exempt(levels[index].spec) {
            // The level that has most beyond its exact part gives a seat, so that larger shares do not end with fewer seats.
            let beyond =
                |&other: &usize| i128::from(seats[other]) * all - i128::from(server_limit) * shares(&levels[other]);
            // Exempt requests start without seats, so that an exempt level may give its last one.
            let can_give = |&other: &usize| seats[other] > i64::from(!is_exempt(levels[other].spec));
            let Some(richest) = (0..seats.len()).filter(can_give).max_by_key(beyond) else { break };
            seats[richest] -= 1;
            seats[index] += 1;
        }
    }
    seats
}
