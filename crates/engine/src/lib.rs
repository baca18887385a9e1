//! Every decision of API Priority and Fairness, and nothing else.

mod attributes;
mod configuration;
mod engine;
mod flow_hash;
mod seat_seconds;
mod seats;
mod work_estimate;

pub mod borrowing;
pub mod classify;
pub mod controller;
pub mod deal;
pub mod digest;
pub mod limits;
pub mod queue_set;
pub mod retry_after;
pub mod time;
pub mod work;

pub use attributes::{Attributes, RequestInfo, User};
pub use configuration::{Classification, Configuration, LevelId, LevelInfo, Schema};
pub use engine::{ApplyReport, Engine, EngineEffects, LevelView, Ticket};
pub use flow_hash::{FlowHasher, flow_hash};
pub use seat_seconds::SeatSeconds;
pub use work_estimate::WorkEstimate;
