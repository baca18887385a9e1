//! A part of a service's seats: several instances share them, and each may use so many until some time (FL).
//!
//! A [`FleetMembership`] runs the member of the fleet and tells it what this instance does. The allowance of the member becomes
//! the seats of the flow control (`seats`). A [`StartGate`] is checked before everything that may start a request: if the process
//! was stopped meanwhile, nothing starts on seats that other instances have by then (FL-8).

mod gate;
mod load;
mod membership;
mod seats;
mod state;

pub(crate) use gate::StartGate;
pub(crate) use membership::FleetMembership;
pub use membership::JoinFleetError;
pub use state::{FleetState, FleetStep};
