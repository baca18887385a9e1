//! A part of a service's seats: several instances share them, and each may use so many until some time (FL).
//!
//! A [`FleetMembership`] runs the member of the fleet and tells it what this instance does. What the member allows becomes the seats of the
//! flow control (`seats`), and the parts of rates become those of its flows (`rates`). A [`StartGate`] is asked before everything that may start a request: whatever stops the
//! process, nothing starts on seats that others have by then (FL-8).

mod gate;
mod limit_history;
mod load;
mod membership;
mod rates;
mod seats;
mod state;

pub(crate) use gate::StartGate;
pub(crate) use membership::FleetMembership;
pub use membership::JoinFleetError;
pub use state::{FleetState, FleetStep};
