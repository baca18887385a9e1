//! Rates by flow: so many requests, or so much cost, in so much time (RL).
//!
//! [`RateLimit`] is the rule, the generic cell rate algorithm (GCRA): a flow is one [`Instant`](crate::time::Instant), the time at which
//! it will have been served everything that it asked for if it is served at the rate. [`FlowStamps`] keeps these stamps for millions of
//! flows in bounded memory. Both are told the time, and there are no timers: who has to wait is told until when.

mod flow_stamps;
mod rate_limit;

pub use flow_stamps::{FlowStamps, Standing};
pub use rate_limit::{OverRate, RateLimit};
