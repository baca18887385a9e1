//! What is counted of requests: plain integers that belong to a level and change while its lock is held anyway, so that a request pays
//! for a few additions and looks nothing up. `observe` shows them.

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

pub(crate) use crowd::Access;
pub(crate) use level::{ControlGauges, Ending, LevelMetrics, Mark, Modes, Notes, Passed, SEAT_UTILIZATION};
pub(crate) use sample::{LevelSample, Readings};
pub(crate) use server::{ServerMetrics, ServerSample};
