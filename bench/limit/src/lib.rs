//! A service whose capacity nobody told, under overload, in `evenkeel-sim`: the limit that finds itself beside a fixed one.
//!
//! The benchmark measures all [scenarios] with many seeds against the bars of docs/spec/limit.md.

mod environment;
mod figures;
mod fleet;
mod run;
pub mod scenarios;

pub use environment::{Environment, Steps};
pub use figures::{Figures, Recovery, Worst, measure};
pub use fleet::{FleetFigures, FleetScenario};
pub use run::{Bucket, Record, Seats, run};
pub use scenarios::Scenario;
