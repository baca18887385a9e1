//! The engine of Evenkeel under a virtual clock: what a configuration does to a load, without a server and without waiting.
//!
//! [`Simulator`] is the engine with a clock and a service: requests go in at the times that the caller says, and what
//! becomes of them comes out. It takes no decision of its own. [`run_stream`] feeds it with recorded requests, in bounded
//! memory. [`run()`] feeds it with the clients of a [workload], and gives a [report].
//!
//! The same input gives the same bytes on every machine: times are whole nanoseconds, random numbers come from a
//! generator of this crate, and no function of the C library is used.

mod accounts;
mod auto_seats;
mod delayed;
mod fairness;
mod fleet;
mod known_objects;
mod level_record;
mod new_request;
mod outcome;
mod random;
mod run;
mod series;
mod server_settings;
mod servers;
mod service;
mod simulator;
mod stream;
mod tally;
mod traffic;

pub mod report;
pub mod workload;

pub use accounts::AccountKey;
pub use auto_seats::AutoSettings;
pub use evenkeel_engine::Histogram;
pub use fairness::jain;
pub use known_objects::KnownObjects;
pub use level_record::{LevelNumber, LevelRecord, Occupancy};
pub use new_request::{Class, NewRequest};
pub use outcome::{End, Outcome, Outcomes, RunningChange};
pub use run::{Run, Scenario, run};
pub use series::{Bucket, REASONS, Series, reason_index};
pub use server_settings::ServerSettings;
pub use service::{ServiceCurve, Sharing};
pub use simulator::Simulator;
pub use stream::{Caller, StreamRequest, run_stream};
pub use tally::Tally;
