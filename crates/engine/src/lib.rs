//! Every decision of API Priority and Fairness, and nothing else.

mod attributes;
mod flow_hash;
mod seat_seconds;
mod work_estimate;

pub mod classify;
pub mod time;

pub use attributes::{Attributes, RequestInfo, User};
pub use flow_hash::{FlowHasher, flow_hash};
pub use seat_seconds::SeatSeconds;
pub use work_estimate::WorkEstimate;
