//! The metrics of API Priority and Fairness, under the names that Kubernetes gives them (section 9.1 of the
//! specification), so that dashboards and alerts made for it work unchanged.
//!
//! Numbers are counted with each level (`control::counts`). A scrape takes the lock of one level after the other, only to copy its
//! numbers, and writes them when it holds none, so nobody waits for a slow reader.
//!
//! Series appear with the first request that belongs to them and stay, also when their level or schema has gone (OB-7).
//! Two things differ from the reference on purpose: `next_s_bounds` and `next_discounted_s_bounds` tell of the moment
//! of the scrape instead of that of the last dispatch, and `read_vs_write_current_requests` as well as the two
//! `apiserver_current_*` metrics are taken at most once in a millisecond.

#![cfg_attr(
    not(feature = "metrics"),
    allow(dead_code, unused_imports, reason = "numbers are counted, and nothing reads them")
)]

#[cfg(feature = "metrics")]
mod catalogue;
#[cfg(feature = "metrics")]
mod collector;
#[cfg(feature = "metrics")]
mod exposition;
#[cfg(feature = "metrics")]
mod page;
#[cfg(feature = "metrics")]
mod process;
mod reading;
#[cfg(feature = "metrics")]
mod register;

#[cfg(feature = "metrics")]
pub use page::MetricsPage;
#[cfg(feature = "metrics")]
pub use process::register_process;
#[cfg(feature = "metrics")]
pub use register::{RegisterError, register_labelled, register_named};

pub use reading::{DurationCounts, LevelQueuing, LevelReading, RateReading, RatioCounts, Reading, SchemaReading};

/// A metric, as it is declared.
///
/// Not `#[non_exhaustive]`: programs declare metrics of their own with it.
#[cfg(feature = "metrics")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name. That of a counter lacks its ending `_total`.
    pub name: &'static str,
    /// What kind of metric it is.
    pub kind: MetricKind,
    /// The names of the labels that its series have, in order.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

/// A kind of metric.
///
/// Not `#[non_exhaustive]`: code that writes metrics has to know every kind.
#[cfg(feature = "metrics")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Observations, counted in buckets.
    Histogram,
}

/// All metrics of a flow control and of the process, as they are declared.
#[cfg(feature = "metrics")]
pub fn declared() -> impl Iterator<Item = Metric> {
    catalogue::ALL.iter().chain(process::ALL).copied()
}

// === impl MetricKind ===

#[cfg(feature = "metrics")]
impl MetricKind {
    /// The word of the exposition formats for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}
