//! Three gateways that share the seats of one service by a real etcd, while everything fails that can: the service never works on more
//! requests than it has seats (FL).
//!
//! The ordinary tests take half a minute. `cargo xtask fleet` lets the faults last for ten minutes, and prints figures beside bars.

#[allow(clippy::print_stdout, reason = "people run these tests to read the figures")]
mod bars;
mod clients;
mod etcd_proxy;
#[allow(clippy::print_stdout, reason = "people run these tests to read the figures")]
mod faults;
mod found_seats;
mod gateways;
mod history;
mod rates;
mod service;
