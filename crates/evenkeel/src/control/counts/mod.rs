//! Counts of requests, from the events of their levels: plain integers behind the lock of the level's listeners. `observe` shows
//! them.

#![cfg_attr(
    not(feature = "metrics"),
    allow(dead_code, unused_imports, reason = "numbers are counted, and nothing reads them")
)]

pub(crate) mod crowd;
pub(crate) mod histogram;
mod level;
pub(crate) mod ratio;
mod sample;
pub(crate) mod series;
mod server;

pub(crate) use crowd::{Access, CROWD_KINDS};
pub(crate) use level::{ControlGauges, LevelMetrics, Mark, Modes, SEAT_UTILIZATION};
pub(crate) use sample::{LevelSample, Readings};
pub(crate) use server::{ServerMetrics, ServerSample};
