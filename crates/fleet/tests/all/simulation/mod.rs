//! A deterministic simulation of a fleet: the product's state machine, a simulated etcd ([`evenkeel_fleet::SimulatedEtcd`]), and processes that stop, die and come
//! back, with clocks that do not run alike.
//!
//! | module | what it does |
//! |---|---|
//! | `process` | one process: a member, its requests, its clock |
//! | `network` | delays, losses, outages |
//! | `faults` | what goes wrong, and when |
//! | `checker` | that the service never gets more than it has |
//! | `seeded` | faults that are put into the protocol, to see that the checker finds them |
//! | `world` | all of it, one event after the other |

mod checker;
mod faults;
mod network;
mod process;
mod seeded;
mod world;

pub(crate) use seeded::SeededFault;
pub(crate) use world::{Plan, World};

/// Virtual time in nanoseconds.
pub(crate) type Time = i64;

pub(crate) const MS: Time = 1_000_000;
pub(crate) const SEC: Time = 1_000_000_000;
