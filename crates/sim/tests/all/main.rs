//! The tests of the simulator.

mod clients;
mod examples;
mod server;
mod stream;
mod workload_errors;
