//! Timeouts: the coarse timer of a worker, and the kinds of timeout that are built on it.

mod coarse_timer;
mod idle_timeout;
mod minimum_rate;
pub(crate) mod stream_timeout;
mod write_timeout;

pub(crate) use coarse_timer::{CoarseTimer, Elapsed, Timeout};
pub(crate) use idle_timeout::{IdleTimeout, poll_idle};
pub(crate) use minimum_rate::MinimumRate;
pub(crate) use write_timeout::WriteTimeout;
