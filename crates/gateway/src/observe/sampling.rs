//! `Sampling`: chooses some of all requests at random.

/// How many of all requests are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    None,
    /// Requests for which a random number is not greater than this.
    Some {
        max: u64,
    },
    All,
}

// === impl Sampling ===

impl Sampling {
    /// Chooses this part of all requests, from 0 to 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "it is between 0 and the largest number"
    )]
    pub(super) fn of(part: f64) -> Self {
        match part {
            part if part >= 1.0 => Self::All,
            part if part > 0.0 => Self::Some { max: (part * u64::MAX as f64) as u64 },
            _ => Self::None,
        }
    }

    /// Whether the next request is chosen.
    #[inline]
    pub(super) fn draw(self, random: impl FnOnce() -> u64) -> bool {
        match self {
            Self::None => false,
            Self::Some { max } => random() <= max,
            Self::All => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_requests_is_chosen() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut drawn = |part| (0..10_000).filter(|_| Sampling::of(part).draw(|| random.u64(..))).count();
        assert_eq!([drawn(-1.0), drawn(0.0), drawn(f64::NAN), drawn(1.0), drawn(2.0)], [0, 0, 0, 10_000, 10_000]);
        let tenth = drawn(0.1);
        assert!((850..1150).contains(&tenth), "{tenth}");
    }
}
