//! Rates by flow: so many requests, or so much cost, in so much time (RL).
//!
//! [`RateLimit`] is the rule, the generic cell rate algorithm (GCRA): a flow is one [`Instant`](crate::time::Instant), the time at which
//! it will have been served everything that it asked for if it is served at the rate. [`FlowStamps`] keeps these stamps for millions of
//! flows in bounded memory. Both are told the time, and there are no timers: who has to wait is told until when.
//!
//! Where several instances have requests of a flow, each has a part of its rate: [`rate_parts`] divides it by their demands, and
//! [`SharedStamps`] keeps stamps by clocks that run at these parts (RL-6).

mod flow_stamps;
mod listed_flow;
mod part_clock;
mod parts;
mod rate_limit;
mod shared_stamps;

pub use flow_stamps::{FlowStamps, Standing};
pub use parts::{RateDemand, RatePart, rate_parts};
pub use rate_limit::{OverRate, RateLimit};
pub use shared_stamps::{RatePassage, RateTicket, SharedStamps};
