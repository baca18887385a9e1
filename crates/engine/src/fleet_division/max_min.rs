//! Weighted max-min and proportional division in integers. Nothing is lost by rounding.

/// A party that wants a part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    /// No more than this.
    pub(super) demand: u64,
    /// Greater than zero: what it gets beside others whose demands are not met.
    pub(super) weight: u64,
}

/// Divides `total` among `claims`: all demands are met, or those that are not have parts in proportion to their weights and none
/// that is met has more than that.
///
/// The parts add up to `total`, or to all demands if that is less.
pub(super) fn max_min(total: u64, claims: &[Claim]) -> Vec<u64> {
    let mut parts = vec![0; claims.len()];
    // Demands are met in the order of demand over weight, as long as what is left would give more than that to everybody.
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by(|left, right| {
        let (left, right) = (claims[*left], claims[*right]);
        let key = |one: Claim, other: Claim| u128::from(one.demand) * u128::from(other.weight);
        key(left, right).cmp(&key(right, left))
    });
    let mut left = total;
    let mut weight_left: u128 = claims.iter().map(|claim| u128::from(claim.weight)).sum();
    for at in order {
        let claim = claims[at];
        let fair = u128::from(left) * u128::from(claim.weight) / weight_left.max(1);
        // A fair part is at most what is left, so that it fits.
        let part = u64::try_from(fair).unwrap_or(left).min(claim.demand);
        parts[at] = part;
        left -= part;
        weight_left -= u128::from(claim.weight);
    }
    // Rounding down leaves the last ones a little more than their fair part, which may be more than they want.
    for (part, claim) in parts.iter_mut().zip(claims) {
        let more = left.min(claim.demand - *part);
        *part += more;
        left -= more;
    }
    parts
}

/// Divides `total` in proportion to `weights`. The parts add up to `total`, unless all weights are zero.
pub(crate) fn proportional(total: u64, weights: &[u64]) -> Vec<u64> {
    let mut left = total;
    let mut weight_left: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    let mut part_of = |weight: u64| {
        let part = u128::from(left) * u128::from(weight) / weight_left.max(1);
        let part = u64::try_from(part).unwrap_or(left);
        left -= part;
        weight_left -= u128::from(weight);
        part
    };
    weights.iter().map(|weight| part_of(*weight)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(total: u64, claims: &[(u64, u64)]) -> Vec<u64> {
        let claims: Vec<Claim> = claims.iter().map(|&(demand, weight)| Claim { demand, weight }).collect();
        max_min(total, &claims)
    }

    #[test]
    fn fl_4_small_demands_are_met_and_the_rest_is_divided_by_weight() {
        assert_eq!(parts(60, &[(100, 1), (10, 1), (100, 1)]), [25, 10, 25]);
        assert_eq!(parts(60, &[(100, 1), (100, 2), (100, 3)]), [10, 20, 30]);
        assert_eq!(parts(60, &[(5, 1), (5, 1)]), [5, 5]);
        assert_eq!(parts(0, &[(5, 1)]), [0]);
        assert!(parts(5, &[]).is_empty());
    }

    #[test]
    fn fl_4_what_cannot_be_divided_evenly_is_not_lost() {
        assert_eq!(parts(10, &[(9, 1), (9, 1), (9, 1)]).iter().sum::<u64>(), 10);
        assert_eq!(proportional(10, &[1, 1, 1]).iter().sum::<u64>(), 10);
        assert_eq!(proportional(10, &[0, 3, 0]), [0, 10, 0]);
        assert_eq!(proportional(10, &[0, 0]), [0, 0]);
    }

    #[test]
    fn fl_4_the_largest_numbers_do_not_overflow() {
        let parts = parts(u64::MAX, &[(u64::MAX, u64::MAX), (u64::MAX, u64::MAX)]);
        assert_eq!(parts, [u64::MAX / 2, u64::MAX / 2 + 1]);
    }
}
