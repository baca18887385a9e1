//! `Concurrency`: how many seats a server has, as operators write it.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use evenkeel_api::Preset;

/// How many seats a server has: a number, or as many as it finds out to be right (AL-3).
///
/// ```
/// use evenkeel_engine::auto_limit::Concurrency;
///
/// assert_eq!("40".parse(), Ok(Concurrency::Fixed(40)));
/// assert_eq!("auto".parse(), Ok(Concurrency::Auto(1..=1000)));
/// assert_eq!("auto:10..400".parse(), Ok(Concurrency::Auto(10..=400)));
/// let error = "auto:400..10".parse::<Concurrency>().unwrap_err();
/// assert_eq!(error.to_string(), "the least (400) is above the most (10)");
/// ```
///
/// Not `#[non_exhaustive]`: a server has to know both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Concurrency {
    /// A fixed number of seats.
    Fixed(u32),
    /// A limit that finds itself, within these bounds.
    Auto(RangeInclusive<u32>),
}

/// Why a text is no number of seats.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConcurrencyError {
    /// The text is neither a number nor `auto`.
    #[error("must be a number of requests such as 40, `auto`, or `auto:10..400`")]
    Form,
    /// Zero seats.
    #[error("must be at least 1")]
    Zero,
    /// The bounds are in the wrong order.
    #[error("the least ({least}) is above the most ({most})")]
    Order {
        /// The lower bound.
        least: u32,
        /// The upper bound.
        most: u32,
    },
}

/// The bounds of `auto`.
pub const AUTO_BOUNDS: RangeInclusive<u32> = 1..=1000;

/// The seats of a kube-apiserver without flags (CL-1): 400 for requests that read, and 200 for those that write.
const KUBERNETES_SEATS: u32 = 600;

/// The first limit in front of an unknown service. It is low, so that the service is not overrun; twice as much is tried within a
/// second.
const AUTO_START: u32 = 20;

// === impl Concurrency ===

impl Concurrency {
    /// The concurrency of a server whose configuration does not say it: in front of a Kubernetes API the number that a
    /// kube-apiserver has, and otherwise a limit that finds itself, because no number is right for every service.
    ///
    /// ```
    /// use evenkeel_api::Preset;
    /// use evenkeel_engine::auto_limit::Concurrency;
    ///
    /// assert_eq!(Concurrency::of_preset(Preset::Plain).to_string(), "auto");
    /// assert_eq!(Concurrency::of_preset(Preset::Kubernetes).to_string(), "600");
    /// ```
    pub fn of_preset(preset: Preset) -> Self {
        if preset == Preset::Kubernetes { Self::Fixed(KUBERNETES_SEATS) } else { Self::Auto(AUTO_BOUNDS) }
    }

    /// The most seats that the server can have.
    pub fn most(&self) -> u32 {
        match self {
            Self::Fixed(seats) => *seats,
            Self::Auto(bounds) => *bounds.end(),
        }
    }

    /// The seats that a server starts with when nothing is known of its service.
    pub fn first(&self) -> u32 {
        match self {
            Self::Fixed(seats) => *seats,
            Self::Auto(bounds) => AUTO_START.clamp(*bounds.start(), *bounds.end()),
        }
    }

    /// The bounds, if the limit finds itself.
    pub fn auto(&self) -> Option<RangeInclusive<u32>> {
        match self {
            Self::Fixed(_) => None,
            Self::Auto(bounds) => Some(bounds.clone()),
        }
    }
}

impl From<u32> for Concurrency {
    fn from(seats: u32) -> Self {
        Self::Fixed(seats)
    }
}

impl FromStr for Concurrency {
    type Err = ConcurrencyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| match text.trim().parse() {
            Ok(0) => Err(ConcurrencyError::Zero),
            Ok(seats) => Ok(seats),
            Err(_) => Err(ConcurrencyError::Form),
        };
        let Some(rest) = text.strip_prefix("auto") else { return number(text).map(Self::Fixed) };
        if rest.is_empty() {
            return Ok(Self::Auto(AUTO_BOUNDS));
        }
        let bounds = rest.strip_prefix(':').and_then(|bounds| bounds.split_once(".."));
        let (least, most) = bounds.ok_or(ConcurrencyError::Form)?;
        let (least, most) = (number(least)?, number(most)?);
        if least > most { Err(ConcurrencyError::Order { least, most }) } else { Ok(Self::Auto(least..=most)) }
    }
}

impl fmt::Display for Concurrency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(seats) => write!(f, "{seats}"),
            Self::Auto(bounds) if *bounds == AUTO_BOUNDS => f.write_str("auto"),
            Self::Auto(bounds) => write!(f, "auto:{}..{}", bounds.start(), bounds.end()),
        }
    }
}
