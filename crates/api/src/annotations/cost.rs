//! The cost of a request, as the annotations `evenkeel.dev/cost` and `evenkeel.dev/cost-per-seat` write it (CO-2, CO-3).

use std::fmt;
use std::str::FromStr;

use super::{HEADER, check_header_name};

/// What the cost of a request is counted in.
///
/// Not `#[non_exhaustive]`: code that counts costs has to know every way.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum CostUnit {
    /// The seconds for which it runs.
    Time,
    /// The bytes of the body of its response.
    Bytes,
    /// What the service says, in a header or a trailer of its response.
    Header {
        /// The name of the header.
        name: String,
        /// Whether clients see it too.
        keeps: bool,
    },
    /// What whoever serves the request counts.
    Tokens,
}

/// The text does not say what costs are counted in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be time, bytes, tokens, header:NAME or header:NAME;keep")]
pub struct NotCostUnit;

/// How many seats a request takes by what it costs.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LearntSeats {
    /// How much of the cost is one seat; above zero.
    pub cost_per_seat: f64,
    /// The most seats; `None`: as many as the level has.
    pub seats_max: Option<u32>,
}

/// The suffix of the name of a header that clients see too.
const KEEP: &str = ";keep";
/// The largest cost of a seat.
const COST_MAX: f64 = 1e15;

/// A number above zero, without a sign and without an exponent.
pub(super) fn read_cost_per_seat(value: &str) -> Option<f64> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    value.parse().ok().filter(|cost: &f64| is_plain && *cost > 0.0 && *cost <= COST_MAX)
}

// === impl CostUnit ===

impl CostUnit {
    /// The name of a so many of them, as in "412 bytes".
    pub fn noun(&self) -> &'static str {
        match self {
            Self::Time => "seconds",
            Self::Bytes => "bytes",
            Self::Header { .. } => "units",
            Self::Tokens => "tokens",
        }
    }
}

impl FromStr for CostUnit {
    type Err = NotCostUnit;

    fn from_str(text: &str) -> Result<Self, NotCostUnit> {
        match text {
            "time" => return Ok(Self::Time),
            "bytes" => return Ok(Self::Bytes),
            "tokens" => return Ok(Self::Tokens),
            _ => {}
        }
        let name = text.strip_prefix(HEADER).ok_or(NotCostUnit)?;
        let (name, keeps) = name.strip_suffix(KEEP).map_or((name, false), |name| (name, true));
        check_header_name(name).map_err(|_| NotCostUnit)?;
        Ok(Self::Header { name: name.to_owned(), keeps })
    }
}

impl fmt::Display for CostUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time => f.write_str("time"),
            Self::Bytes => f.write_str("bytes"),
            Self::Tokens => f.write_str("tokens"),
            Self::Header { name, keeps } => write!(f, "{HEADER}{name}{}", if *keeps { KEEP } else { "" }),
        }
    }
}
