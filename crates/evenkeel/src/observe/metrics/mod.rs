//! The metrics of API Priority and Fairness, under the names that Kubernetes gives them (section 9.1 of the
//! specification), so that dashboards and alerts made for it work unchanged.
//!
//! Numbers are plain integers that belong to a level and change while its lock is held anyway: a request pays for a
//! few additions and looks nothing up. A scrape takes the lock of one level after the other, only to copy its numbers,
//! and writes them when it holds none, so nobody waits for a slow reader.
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
mod crowd;
#[cfg(feature = "metrics")]
mod exposition;
mod histogram;
mod level;
mod ratio;
mod reading;
mod sample;
mod series;
mod server;

pub(crate) use crowd::Access;
pub(crate) use level::{ControlGauges, Ending, LevelMetrics, Mark, Notes, Passed};
pub use reading::{DurationCounts, LevelQueuing, LevelReading, RatioCounts, Reading, SchemaReading};
pub(crate) use sample::{LevelSample, Readings};
pub(crate) use server::{ServerMetrics, ServerSample};
