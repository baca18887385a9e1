//! What the controller asks of whoever holds the queue sets.

use crate::borrowing::DemandPeriod;
use crate::configuration::LevelId;
use crate::queue_set::QueueSetConfig;
use crate::time::Instant;

/// The queue sets of all levels, wherever they are kept: in a plain table, or each behind a lock of its own.
///
/// The controller names only levels that it has created and not removed.
pub trait Levels {
    /// A level comes into being: it needs a queue set.
    fn create(&mut self, level: LevelId, config: QueueSetConfig, now: Instant);

    /// The queue set of a level is configured anew, which may start waiting requests.
    fn configure(&mut self, level: LevelId, config: QueueSetConfig, now: Instant);

    /// Ends a period in which the demand for seats was observed, and starts the next.
    fn end_demand_period(&mut self, level: LevelId, now: Instant) -> DemandPeriod;

    /// Whether nothing waits and nothing executes in a level (FQ-34).
    fn is_idle(&mut self, level: LevelId) -> bool;

    /// A level is gone. Requests may still linger in it; their ends concern nobody else.
    fn remove(&mut self, level: LevelId);
}
