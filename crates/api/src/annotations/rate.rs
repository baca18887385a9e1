//! A rate for each flow, as the annotation `evenkeel.dev/rate` writes it (RL-1).

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::CostUnit;

/// A rate for each flow of a schema.
///
/// ```
/// use evenkeel_api::annotations::{Excess, Rate};
///
/// let rate: Rate = "100/m;burst=20;excess=reject".parse()?;
/// assert_eq!((rate.amount, rate.period.duration().as_secs(), rate.burst()), (100, 60, 20));
/// assert_eq!(rate.excess, Excess::Reject);
/// assert_eq!(rate.to_string(), "100/m;burst=20;excess=reject");
/// # Ok::<(), evenkeel_api::annotations::NotRate>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Rate {
    /// The amount in each period.
    pub amount: u64,
    /// How long that is.
    pub period: RatePeriod,
    /// How much may pass at once; `None`: as much as the amount.
    pub burst: Option<u64>,
    /// The unit of the amount.
    pub unit: RateUnit,
    /// The treatment of a request over the rate.
    pub excess: Excess,
}

/// The time of a rate.
///
/// Not `#[non_exhaustive]`: code that reckons with rates has to know every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RatePeriod {
    /// `/s`
    Second,
    /// `/m`
    Minute,
    /// `/h`
    Hour,
}

/// The unit that a rate counts.
///
/// Not `#[non_exhaustive]`: code that counts has to know every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RateUnit {
    /// Requests.
    #[default]
    Requests,
    /// Bytes of responses.
    Bytes,
    /// What whoever serves the request counts.
    Tokens,
}

/// The treatment of a request over the rate.
///
/// Not `#[non_exhaustive]`: code that decides has to know every one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Excess {
    /// The request waits until it conforms, if that is within its wait limit.
    #[default]
    Wait,
    /// The request is rejected at once.
    Reject,
}

/// The text is no rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be a rate such as 100/s, 100/m or 100/h, and perhaps ;burst=50, ;unit=requests|bytes|tokens and ;excess=wait|reject"
)]
pub struct NotRate;

/// The largest amount and the largest burst.
const AMOUNT_MAX: u64 = 1_000_000_000_000;

fn read_amount(text: &str) -> Result<u64, NotRate> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|amount| is_plain && (1..=AMOUNT_MAX).contains(amount)).ok_or(NotRate)
}

// === impl Rate ===

impl Rate {
    /// How much may pass at once.
    pub fn burst(&self) -> u64 {
        self.burst.unwrap_or(self.amount)
    }

    /// How much in a second, on average.
    pub fn per_second(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "far below where whole numbers are not exact")]
        let amount = self.amount as f64;
        amount / self.period.duration().as_secs_f64()
    }
}

impl FromStr for Rate {
    type Err = NotRate;

    fn from_str(text: &str) -> Result<Self, NotRate> {
        let mut parts = text.split(';').map(str::trim);
        let (amount, letter) = parts.next().and_then(|rate| rate.split_once('/')).ok_or(NotRate)?;
        let periods = [RatePeriod::Second, RatePeriod::Minute, RatePeriod::Hour];
        let period = periods.into_iter().find(|period| period.letter() == letter).ok_or(NotRate)?;
        let mut rate = Self {
            amount: read_amount(amount)?,
            period,
            burst: None,
            unit: RateUnit::default(),
            excess: Excess::default(),
        };
        let (mut has_unit, mut has_excess) = (false, false);
        for option in parts {
            match option.split_once('=').ok_or(NotRate)? {
                ("burst", value) if rate.burst.is_none() => rate.burst = Some(read_amount(value)?),
                ("unit", value) if !has_unit => {
                    let units = [RateUnit::Requests, RateUnit::Bytes, RateUnit::Tokens];
                    rate.unit = units.into_iter().find(|unit| unit.name() == value).ok_or(NotRate)?;
                    has_unit = true;
                }
                ("excess", value) if !has_excess => {
                    rate.excess = match value {
                        "wait" => Excess::Wait,
                        "reject" => Excess::Reject,
                        _ => return Err(NotRate),
                    };
                    has_excess = true;
                }
                _ => return Err(NotRate),
            }
        }
        Ok(rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.amount, self.period.letter())?;
        if let Some(burst) = self.burst {
            write!(f, ";burst={burst}")?;
        }
        if self.unit != RateUnit::default() {
            write!(f, ";unit={}", self.unit.name())?;
        }
        if self.excess == Excess::Reject {
            f.write_str(";excess=reject")?;
        }
        Ok(())
    }
}

// === impl RatePeriod ===

impl RatePeriod {
    /// The period.
    pub const fn duration(self) -> Duration {
        match self {
            Self::Second => Duration::from_secs(1),
            Self::Minute => Duration::from_secs(60),
            Self::Hour => Duration::from_secs(3600),
        }
    }

    /// The letter for it.
    pub const fn letter(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "m",
            Self::Hour => "h",
        }
    }
}

// === impl RateUnit ===

impl RateUnit {
    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Bytes => "bytes",
            Self::Tokens => "tokens",
        }
    }

    /// The unit of costs for this rate; `None` if the rate does not depend on costs.
    pub fn cost_unit(self) -> Option<CostUnit> {
        match self {
            Self::Requests => None,
            Self::Bytes => Some(CostUnit::Bytes),
            Self::Tokens => Some(CostUnit::Tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rl_1_rates_are_read_and_written() {
        for text in ["100/s", "1/h", "600/m;burst=1", "5000000/s;unit=bytes", "9/s;burst=3;unit=tokens;excess=reject"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        let spaced: Rate = "100/s; burst=50; unit=requests; excess=wait".parse().unwrap();
        assert_eq!(spaced.to_string(), "100/s;burst=50");
        assert_eq!("100/s".parse::<Rate>().unwrap().burst(), 100);
        assert!(("90/m".parse::<Rate>().unwrap().per_second() - 1.5).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_rate_is_said_to_be_none() {
        for text in [
            "",
            "100",
            "/s",
            "0/s",
            "-1/s",
            "1.5/s",
            "100/d",
            "100/second",
            "100 /s",
            "100/s;",
            "100/s;burst",
            "100/s;burst=0",
            "100/s;burst=1;burst=2",
            "100/s;unit=request",
            "100/s;unit=bytes;unit=bytes",
            "100/s;excess=drop",
            "100/s;rate=1",
            "1000000000001/s",
            "+5/s",
        ] {
            assert_eq!(text.parse::<Rate>(), Err(NotRate), "{text}");
        }
    }
}
