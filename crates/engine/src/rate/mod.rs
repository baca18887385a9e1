//! Rates by flow: so many requests, or so much cost, in so much time (RL).
//!
//! [`RateLimit`] is the rule, the generic cell rate algorithm (GCRA): a flow is one [`Instant`](crate::time::Instant), the time
//! at which it will have been served everything that it asked for if it is served at the rate. [`FlowStamps`] keeps these stamps
//! for millions of flows in bounded memory. The time is an argument of both, and there are no timers: the caller of a request
//! that has to wait gets the time at which it may pass.

mod flow_stamps;
mod rate_limit;

pub use flow_stamps::{FlowStamps, Standing};
pub use rate_limit::{OverRate, RateLimit};
