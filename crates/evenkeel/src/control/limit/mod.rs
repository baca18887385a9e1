//! The limit that finds itself, as the library runs it: the levels add up their events, and the upkeep passes the sums to the
//! engine's [`AutoLimit`](evenkeel_engine::auto_limit::AutoLimit) from time to time (AL-8).
//!
//! Nothing is decided on the path of a request, and nothing is locked there in addition: a [`LevelSums`] is a listener of its level, told
//! of events in batches. While requests wait, the sums are looked at every 5 ms; while none does, every 50 ms; and never while
//! nothing happens ([`Pulse`]).

mod finder;
mod pulse;
mod resized;
mod state;
mod sums;

pub(crate) use finder::{Finder, LimitTick};
pub(crate) use pulse::{Pace, Pulse};
pub use state::{LimitState, LimitStep};
pub(crate) use sums::LevelSums;
