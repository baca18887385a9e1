//! Every decision of API Priority and Fairness, and nothing else.

mod attributes;
mod flow_hash;
mod seat_seconds;
mod seats;
mod work_estimate;

pub mod borrowing;
pub mod deal;
pub mod limits;
pub mod queue_set;
pub mod retry_after;
pub mod classify;
pub mod time;

pub use attributes::{Attributes, RequestInfo, User};
pub use flow_hash::{FlowHasher, flow_hash};
pub use seat_seconds::SeatSeconds;
pub use work_estimate::WorkEstimate;
