//! The protocol of the fleet under faults.

mod bars;
mod liveness;
mod safety;
mod simulation;
