//! The engine of Evenkeel under a virtual clock: what a configuration does to a load, without a server and without waiting.
//!
//! [`Simulator`] is the engine with a clock and a service: requests go in at the times that the caller says, and what
//! becomes of them comes out. It takes no decision of its own. [`run_stream`] feeds it with recorded requests, in bounded
//! memory.
//!
//! The same input gives the same bytes on every machine: times are whole nanoseconds, random numbers come from a
//! generator of this crate, and no function of the C library is used.

mod histogram;
mod level_record;
mod outcome;
mod series;
mod service;
mod simulator;
mod stream;

pub use histogram::Histogram;
pub use level_record::{LevelNumber, LevelRecord, Occupancy};
pub use outcome::{End, Outcome, Outcomes};
pub use series::{Bucket, REASONS, Series, reason_index};
pub use simulator::{Class, NewRequest, ServerSettings, Simulator};
pub use stream::{Caller, StreamRequest, run_stream};
