//! When an upstream gets no requests for a while.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::duration;

/// When an upstream is down and gets no requests. Failures of connections count by themselves, responses in comparison with the
/// other upstreams. A sole upstream that is down still gets requests.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct HealthConfig {
    /// The number of consecutive failures: connections that are refused, or closed before a response.
    pub failures: u32,
    /// The number of errors in a row, or more of them in a longer row, that the other upstreams do not show; zero if responses do
    /// not matter. Errors are status 5xx except 501 and 505, such statuses of gRPC, and requests without a response.
    pub errors: u32,
    /// The tolerated share of errors, between 0 and 1.
    pub error_share: f64,
    /// How long nothing may come back while requests wait, if the other upstreams respond; zero if that does not matter.
    #[serde(with = "duration")]
    pub silence: Duration,
    /// The first pause; it doubles each time the upstream fails again.
    #[serde(with = "duration")]
    pub pause: Duration,
    /// The longest pause.
    #[serde(with = "duration")]
    pub pause_max: Duration,
    /// How long it takes until an upstream that comes back has its whole share of the requests.
    #[serde(with = "duration")]
    pub slow_start: Duration,
    /// What upstreams are asked for from time to time, if anything.
    pub check: Option<HealthCheckConfig>,
}

/// A health check: a GET request that every upstream gets from time to time.
///
/// Not `#[non_exhaustive]`: programs that set up checks make it. Begin with [`HealthCheckConfig::new`]: releases add fields.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HealthCheckConfig {
    /// The path, which the path of the upstream's URL is put before.
    pub path: String,
    /// The time from the start of one check to that of the next.
    #[serde(default = "interval", with = "duration")]
    pub interval: Duration,
    /// How long a check may take.
    #[serde(default = "timeout", with = "duration")]
    pub timeout: Duration,
    /// How many checks in a row have to pass until an upstream gets requests again.
    #[serde(default = "healthy_after")]
    pub healthy_after: u32,
    /// How many checks in a row have to fail until an upstream gets no requests.
    #[serde(default = "unhealthy_after")]
    pub unhealthy_after: u32,
    /// The statuses of a check that passes.
    #[serde(default = "expect")]
    pub expect: Vec<StatusRange>,
}

/// Statuses from one to another: `200`, or `200-399`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusRange {
    first: u16,
    last: u16,
}

// === impl HealthConfig ===

impl Default for HealthConfig {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            failures: 3,
            errors: 5,
            error_share: 0.25,
            silence: seconds(1),
            pause: seconds(1),
            pause_max: seconds(30),
            slow_start: seconds(5),
            check: None,
        }
    }
}

// === impl HealthCheckConfig ===

impl HealthCheckConfig {
    /// A check of this path, with everything else as it is by default.
    pub fn new(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            interval: interval(),
            timeout: timeout(),
            healthy_after: healthy_after(),
            unhealthy_after: unhealthy_after(),
            expect: expect(),
        }
    }
}

fn interval() -> Duration {
    Duration::from_secs(5)
}

fn timeout() -> Duration {
    Duration::from_secs(2)
}

fn healthy_after() -> u32 {
    2
}

fn unhealthy_after() -> u32 {
    3
}

fn expect() -> Vec<StatusRange> {
    vec![StatusRange { first: 200, last: 399 }]
}

// === impl StatusRange ===

impl StatusRange {
    /// Whether a status is one of them.
    pub fn contains(self, status: StatusCode) -> bool {
        (self.first..=self.last).contains(&status.as_u16())
    }
}

impl FromStr for StatusRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u16>().ok().filter(|status| (100..=599).contains(status));
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err(format!("{text:?} is no status or range of statuses; write it as `200` or `200-399`")),
        }
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            write!(formatter, "{}", self.first)
        } else {
            write!(formatter, "{}-{}", self.first, self.last)
        }
    }
}

impl Serialize for StatusRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StatusRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl de::Visitor<'_> for Text {
            type Value = StatusRange;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a status such as 200, or a range such as 200-399")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<StatusRange, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<StatusRange, E> {
                number.to_string().parse().map_err(E::custom)
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<StatusRange, E> {
                number.to_string().parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_any(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_numbers_or_ranges() {
        for (text, shown) in [("200", "200"), ("200-399", "200-399"), ("204-204", "204"), ("200 - 299", "200-299")] {
            assert_eq!(text.parse::<StatusRange>().unwrap().to_string(), shown);
        }
        for wrong in ["", "99", "600", "300-200", "2xx", "200-", "-1"] {
            let error = wrong.parse::<StatusRange>().unwrap_err();
            assert!(error.contains("write it as `200` or `200-399`"), "{error}");
        }
        let range: StatusRange = "200-399".parse().unwrap();
        let contains = |status| range.contains(StatusCode::from_u16(status).unwrap());
        assert_eq!([199, 200, 399, 400].map(contains), [false, true, true, false]);
    }
}
