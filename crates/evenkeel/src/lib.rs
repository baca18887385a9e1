//! Priority and fairness for any Rust service.

pub mod debug;

mod admission;
mod admit;
mod builder;
mod clock;
mod events;
mod flow_control;
mod known_levels;
mod level;
mod metrics;
mod permit;
mod rejected;
mod request;
mod snapshot;
mod trace;
mod upkeep;

pub use admit::Admit;
pub use builder::{Builder, IntoObjects};
pub use clock::ManualClock;
pub use flow_control::{FlowControl, Report};
pub use permit::Permit;
pub use rejected::Rejected;
pub use request::{Details, EstimateWork, Patience, Request};

pub use evenkeel_api as api;
pub use evenkeel_engine as engine;
