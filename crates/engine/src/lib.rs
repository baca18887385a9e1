//! Every decision of API Priority and Fairness, and nothing else.

mod attributes;
mod seat_seconds;
mod work_estimate;

pub mod digest;
pub mod time;
pub mod work;

pub use attributes::{Attributes, RequestInfo, User};
pub use seat_seconds::SeatSeconds;
pub use work_estimate::WorkEstimate;
