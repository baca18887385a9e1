//! How much work a request is expected to be (WE-1 to WE-23).
//!
//! [`Estimator`] is a pure function of a request and of what is known about the server: how many objects there are
//! ([`ObjectStatistics`]) and how many watches have to be told of a change ([`WatchInterest`]). [`ObjectCounts`] and
//! [`WatchCounts`] keep those two.
//!
//! ```
//! use evenkeel_engine::digest::{Kubernetes, Query};
//! use evenkeel_engine::time::{Instant, SECOND};
//! use evenkeel_engine::work::{Circumstances, Estimator, ObjectCounts, WatchCounts};
//!
//! let mut objects = ObjectCounts::default();
//! objects.set("pods", 399, 10_000, Instant::from_nanos(0));
//! let watches = WatchCounts::default();
//!
//! let target = "/api/v1/pods";
//! let request = Kubernetes::default().digest("GET", target).unwrap();
//! let circumstances = Circumstances {
//!     now: Instant::from_nanos(SECOND),
//!     level_cap: Some(50),
//!     objects: &objects,
//!     watches: &watches,
//!     consistent_reads_from_cache: false,
//! };
//! let estimate = Estimator::default().estimate(Some(&request), Query::of_target(target), &circumstances);
//! assert_eq!(estimate.initial_seats, 40);
//! ```

mod cap;
mod config;
mod estimator;
mod list;
mod mutating;
mod object_counts;
#[cfg(test)]
mod tests;
mod watch_counts;

pub use cap::level_cap;
pub use config::{EstimatorConfig, ListCosting};
pub use estimator::{Circumstances, Estimator};
pub use object_counts::{ObjectCounts, ObjectStatistics, Statistics};
pub use watch_counts::{WatchCounts, WatchInterest, WatchRegistration};
