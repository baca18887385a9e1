//! How long the service works on requests, and what they cost.

use evenkeel_engine::time::Nanos;

use crate::random::Random;

/// A distribution of service times in nanoseconds, or of costs.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// All the same.
    Fixed(Nanos),
    /// From the one to the other, evenly.
    Uniform(Nanos, Nanos),
    /// Exponential with that mean.
    Exponential(Nanos),
    /// The logarithm is normally distributed.
    Lognormal {
        /// Half of all are shorter.
        median: Nanos,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
    /// One of several, each with a part of all requests. The parts add up to 1.
    Mix(Vec<(f64, Distribution)>),
}

/// No request is less work than this, so that clients cannot send requests without end at one point in time.
const SERVICE_MIN: Nanos = 1000;

// === impl Distribution ===

impl Distribution {
    /// Draws the time of one request.
    pub(crate) fn draw(&self, random: &mut Random) -> Nanos {
        self.draw_any(random).max(SERVICE_MIN)
    }

    #[expect(clippy::cast_precision_loss, reason = "spans of seconds")]
    pub(crate) fn draw_any(&self, random: &mut Random) -> Nanos {
        match self {
            Self::Fixed(span) => *span,
            Self::Uniform(least, most) => random.between(*least, *most),
            Self::Exponential(mean) => random.exponential(*mean as f64),
            Self::Lognormal { median, sigma } => random.lognormal(*median, *sigma),
            Self::Mix(parts) => {
                let mut left = random.fraction();
                for (part, distribution) in parts {
                    if left < *part {
                        return distribution.draw_any(random);
                    }
                    left -= part;
                }
                // What rounding leaves over belongs to the last part.
                parts.last().map_or(SERVICE_MIN, |(_, distribution)| distribution.draw_any(random))
            }
        }
    }
}
