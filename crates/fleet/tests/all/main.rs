//! The protocol of the fleet under faults.

mod bars;
mod figures;
mod found_seats;
mod liveness;
mod safety;
mod simulation;
