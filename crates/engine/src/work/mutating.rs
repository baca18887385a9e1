//! The cost of changes: telling the watches of them (WE-16 to WE-19).

use super::{Circumstances, EstimatorConfig, cap};
use crate::{RequestInfo, SeatSeconds, WorkEstimate};

/// Whether the watches are counted for a change.
pub(super) fn depends_on_watches(config: &EstimatorConfig, request: &RequestInfo<'_>) -> bool {
    // A token is made without anything being stored.
    let is_token = request.resource == "serviceaccounts" && request.subresource == "token";
    config.mutating_costs_by_watches && !is_token
}

pub(super) fn estimate(
    config: &EstimatorConfig,
    request: &RequestInfo<'_>,
    circumstances: &Circumstances<'_>,
) -> WorkEstimate {
    if !depends_on_watches(config, request) {
        return WorkEstimate::seats(config.seats_min);
    }
    let seats_max = cap::effective(circumstances.level_cap, config.mutating_seats_max);
    lingering(config, circumstances.watches.interested(request), seats_max)
}

/// One seat for the change itself, and seats after it for the watches. What is too wide becomes narrower and longer.
#[expect(clippy::cast_precision_loss, reason = "WE-19 asks for binary64")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "WE-18: toward zero; WE-19: bounded above")]
fn lingering(config: &EstimatorConfig, watches: u64, seats_max: u32) -> WorkEstimate {
    if watches == 0 || watches < config.watches_per_seat as u64 {
        return WorkEstimate::ONE_SEAT;
    }
    let seats_wanted = (watches as f64 / config.watches_per_seat).ceil();
    let work = SeatSeconds::of(seats_wanted, config.event_duration);
    let seats = seats_wanted.min(f64::from(seats_max));
    WorkEstimate { initial_seats: 1, final_seats: seats as u32, additional_latency: work.span_per_seat(seats) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_19_table() {
        let config = EstimatorConfig::default();
        for (watches, level_cap, final_seats, additional_latency) in [
            (9, Some(10), 0, 0),
            (10, Some(10), 1, 5_000_000),
            (11, Some(10), 2, 5_000_000),
            (29, Some(10), 3, 5_000_000),
            (57, Some(4), 4, 7_500_000),
            (95, Some(1), 1, 50_000_000),
            (100, Some(5), 5, 10_000_000),
            (199, Some(10), 10, 10_000_000),
            (200, Some(3), 3, 33_333_333),
            (1000, Some(20), 10, 50_000_000),
            (1000, None, 10, 50_000_000),
        ] {
            let seats_max = cap::effective(level_cap, config.mutating_seats_max);
            assert_eq!(
                lingering(&config, watches, seats_max),
                WorkEstimate { initial_seats: 1, final_seats, additional_latency },
                "{watches} watches, cap {level_cap:?}"
            );
        }
    }

    #[test]
    fn odd_parameters_do_no_harm() {
        let config = EstimatorConfig { watches_per_seat: 0.0, event_duration: -1, ..EstimatorConfig::default() };
        assert_eq!(lingering(&config, 0, 10), WorkEstimate::ONE_SEAT);
        assert_eq!(lingering(&config, u64::MAX, 10).final_seats, 10);
    }
}
