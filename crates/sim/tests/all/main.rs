//! The tests of the simulator.

#![allow(clippy::unwrap_used, clippy::float_cmp, clippy::cast_precision_loss, reason = "tests of exact figures")]

mod auto_seats;
mod clients;
#[path = "../costed_objects/mod.rs"]
mod costed_objects;
mod costs;
mod examples;
mod fleet;
mod server;
mod stream;
mod workload_errors;
