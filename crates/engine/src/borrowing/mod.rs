//! Seats that follow demand: levels lend what they do not use, and borrow what others leave (CL-8 to CL-22).
//!
//! From demand to limits, one module for each step:
//!
//! 1. `demand`: a [`DemandIntegrator`] follows how many seats a level could use, at every change.
//! 2. `statistics`: at the end of a period, [`DemandStatistics`] sum up what it has seen.
//! 3. `division`: whoever implements [`DivideSeats`] divides the seats among the levels. This decision can be exchanged
//!    without touching the other steps.
//! 4. `adjust`: [`FaithfulDivision`] divides them as Kubernetes does. It is the default.
//!    `exact`: [`ExactDivision`] never divides more seats than there are; it is what ordinary services use.
//! 5. `allocate`: the [`Allocator`] finds the proportion at which the levels' wishes add up to the seats there are.
//!
//! That divides seats every ten seconds. With a [`Ledger`] levels borrow and give back at every event instead.
//!
//! ```
//! use evenkeel_api::bootstrap;
//! use evenkeel_engine::borrowing::{DemandIntegrator, DemandStatistics, LevelDemand, adjust};
//! use evenkeel_engine::limits::{LevelLimits, ShareSum};
//! use evenkeel_engine::time::{Instant, SECOND};
//!
//! // One level of two is busy for ten seconds.
//! let (mut demand, mut statistics) = (DemandIntegrator::new(Instant::default()), DemandStatistics::default());
//! demand.set(Instant::default(), 400);
//! statistics.update(&demand.read_and_reset(Instant::from_nanos(10 * SECOND)));
//!
//! let limits = LevelLimits { nominal: 300, lendable: 150, borrowing: 600, min: 150, max: 900 };
//! let idle = LevelDemand { is_exempt: false, limits, statistics: DemandStatistics::default(), current: 300 };
//! let busy = LevelDemand { statistics, ..idle };
//!
//! let adjustment = adjust(&[idle, busy]);
//! assert_eq!(adjustment.levels[0].current, 164);
//! assert_eq!(adjustment.levels[1].current, 436);
//! ```

mod adjust;
mod allocate;
mod demand;
mod division;
mod exact;
mod ledger;
mod statistics;

pub use adjust::{FaithfulDivision, adjust};
pub use allocate::{Allocation, Allocator, Class, Infeasible};
pub use demand::{DemandIntegrator, DemandPeriod};
pub use division::{AdjustedLevel, Adjustment, DivideSeats, LevelDemand};
pub use exact::{ExactDivision, SeatDivision};
pub use ledger::{Granted, Ledger, Stake, Wish};
pub use statistics::DemandStatistics;
