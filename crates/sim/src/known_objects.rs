//! How many objects there are, as the user says, for estimates of how wide requests are.

use std::collections::BTreeMap;

use evenkeel_engine::time::Instant;
use evenkeel_engine::work::{ObjectStatistics, Statistics};

/// The number and size of the objects of some resources. Unlike those of a server, they do not get stale.
///
/// ```
/// use evenkeel_engine::time::Instant;
/// use evenkeel_engine::work::{ObjectStatistics, Statistics};
/// use evenkeel_sim::KnownObjects;
///
/// let mut objects = KnownObjects::default();
/// objects.set("deployments.apps", 70, 4_000);
/// let found = objects.statistics("deployments", "apps", Instant::from_nanos(0));
/// assert_eq!(found, Statistics::Fresh { count: 70, average_bytes: 4_000 });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownObjects {
    groups: BTreeMap<Box<str>, Resources>,
}

/// The number of objects of each resource, and their average size.
type Resources = BTreeMap<Box<str>, (i64, i64)>;

// === impl KnownObjects ===

impl KnownObjects {
    /// There are so many objects of a resource, written `pods` or `deployments.apps`, of that many bytes on average; 0 bytes
    /// if their size is not known.
    pub fn set(&mut self, resource: &str, count: i64, average_bytes: i64) {
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        self.groups.entry(group.into()).or_default().insert(resource.into(), (count, average_bytes));
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }
}

impl ObjectStatistics for KnownObjects {
    fn statistics(&self, resource: &str, api_group: &str, _now: Instant) -> Statistics {
        match self.groups.get(api_group).and_then(|group| group.get(resource)) {
            Some(&(count, average_bytes)) => Statistics::Fresh { count, average_bytes },
            None => Statistics::NeverRecorded,
        }
    }
}
