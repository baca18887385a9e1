//! How many objects of each resource there are, and how large they are (WE-10, WE-15).

use std::collections::HashMap;

use crate::time::{Instant, Nanos, SECOND};

/// Where estimates find out how many objects there are.
pub trait ObjectStatistics {
    /// What is known at that time about a resource of an API group, which is empty for the core group.
    fn statistics(&self, resource: &str, api_group: &str, now: Instant) -> Statistics;
}

/// What is known about the objects of a resource.
///
/// Not `#[non_exhaustive]`: an estimate has to handle every case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistics {
    /// Nothing, and perhaps there is no such resource.
    NeverRecorded,
    /// Nothing that is still true.
    Stale,
    /// The number and size of the objects of the resource.
    Fresh {
        /// How many there are.
        count: i64,
        /// How large they are on average; not positive if that is not known.
        average_bytes: i64,
    },
}

/// The number and size of objects, as somebody reports it about once a minute.
///
/// Call [`set`](Self::set) with every report and [`prune`](Self::prune) every [`PRUNE_PERIOD`](Self::PRUNE_PERIOD).
///
/// ```
/// use evenkeel_engine::time::{Instant, SECOND};
/// use evenkeel_engine::work::{ObjectCounts, ObjectStatistics, Statistics};
///
/// let mut objects = ObjectCounts::default();
/// objects.set("deployments.apps", 70, 4_000, Instant::from_nanos(0));
/// let at = |seconds| objects.statistics("deployments", "apps", Instant::from_nanos(seconds * SECOND));
/// assert_eq!(at(180), Statistics::Fresh { count: 70, average_bytes: 4_000 });
/// assert_eq!(at(181), Statistics::Stale);
/// ```
#[derive(Debug, Clone, Default)]
pub struct ObjectCounts {
    /// The counts by the key up to its first dot. Two steps, so that looking one up needs no text that is put together.
    by_resource: HashMap<Box<str>, CountEntries>,
}

#[derive(Debug, Clone, Default)]
struct CountEntries {
    without_group: Option<CountEntry>,
    by_group: HashMap<Box<str>, CountEntry>,
}

#[derive(Debug, Clone, Copy)]
struct CountEntry {
    count: i64,
    average_bytes: i64,
    updated: Instant,
}

/// How long a report is taken for true.
const FRESH_FOR: Nanos = 180 * SECOND;
/// How long it is known that there was a report.
const KEPT_FOR: Nanos = 3600 * SECOND;

// === impl ObjectCounts ===

impl ObjectCounts {
    /// How often old reports are to be removed.
    pub const PRUNE_PERIOD: Nanos = 3600 * SECOND;

    /// Takes note of a report. The key is the resource, followed by a dot and the API group if there is one.
    pub fn set(&mut self, key: &str, count: i64, average_bytes: i64, now: Instant) {
        let entry = CountEntry { count, average_bytes, updated: now };
        match key.split_once('.') {
            None => self.by_resource.entry(key.into()).or_default().without_group = Some(entry),
            Some((resource, group)) => {
                self.by_resource.entry(resource.into()).or_default().by_group.insert(group.into(), entry);
            }
        }
    }

    /// Removes reports that are an hour old.
    pub fn prune(&mut self, now: Instant) {
        let is_kept = |entry: &CountEntry| now - entry.updated < KEPT_FOR;
        self.by_resource.retain(|_, entries| {
            entries.without_group = entries.without_group.filter(is_kept);
            entries.by_group.retain(|_, entry| is_kept(entry));
            entries.without_group.is_some() || !entries.by_group.is_empty()
        });
    }

    fn entry(&self, resource: &str, api_group: &str) -> Option<&CountEntry> {
        if let Some((start, end)) = resource.split_once('.') {
            // Rare: the resource itself has a dot, and the key is as if a part of it belonged to the group (WE-10).
            let by_group = &self.by_resource.get(start)?.by_group;
            return if api_group.is_empty() { by_group.get(end) } else { by_group.get(&*format!("{end}.{api_group}")) };
        }
        let entries = self.by_resource.get(resource)?;
        if api_group.is_empty() { entries.without_group.as_ref() } else { entries.by_group.get(api_group) }
    }
}

impl ObjectStatistics for ObjectCounts {
    fn statistics(&self, resource: &str, api_group: &str, now: Instant) -> Statistics {
        match self.entry(resource, api_group) {
            None => Statistics::NeverRecorded,
            Some(entry) if now - entry.updated > FRESH_FOR => Statistics::Stale,
            Some(entry) => Statistics::Fresh { count: entry.count, average_bytes: entry.average_bytes },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(seconds: i64) -> Instant {
        Instant::from_nanos(seconds * SECOND)
    }

    fn fresh(count: i64) -> Statistics {
        Statistics::Fresh { count, average_bytes: 10 }
    }

    #[test]
    fn we_10_keys_are_the_resource_a_dot_and_the_group() {
        let mut objects = ObjectCounts::default();
        for (count, key) in [(1, "pods"), (2, "pods.metrics.k8s.io"), (3, "a.b.c"), (4, "d.")] {
            objects.set(key, count, 10, second(0));
        }
        for (resource, group, statistics) in [
            ("pods", "", fresh(1)),
            ("pods", "metrics.k8s.io", fresh(2)),
            ("pods.metrics.k8s.io", "", fresh(2)),
            ("pods.metrics", "k8s.io", fresh(2)),
            ("a", "b.c", fresh(3)),
            ("a.b", "c", fresh(3)),
            ("d.", "", fresh(4)),
            ("d", "", Statistics::NeverRecorded),
            ("pods.", "", Statistics::NeverRecorded),
            ("pods", "apps", Statistics::NeverRecorded),
            ("", "", Statistics::NeverRecorded),
        ] {
            assert_eq!(objects.statistics(resource, group, second(0)), statistics, "{resource} {group}");
        }
    }

    #[test]
    fn we_15_fresh_stale_pruned() {
        let mut objects = ObjectCounts::default();
        objects.set("pods", 1, 10, second(0));
        objects.set("jobs.batch", 2, 10, second(1));
        assert_eq!(objects.statistics("pods", "", second(180)), fresh(1));
        assert_eq!(objects.statistics("pods", "", second(180) + 1), Statistics::Stale);
        objects.prune(second(3600) + -1);
        assert_eq!(objects.statistics("pods", "", second(3600)), Statistics::Stale);
        objects.prune(second(3600));
        assert_eq!(objects.statistics("pods", "", second(3600)), Statistics::NeverRecorded);
        assert_eq!(objects.statistics("jobs", "batch", second(3600)), Statistics::Stale);
        objects.set("jobs.batch", 3, 10, second(3600));
        assert_eq!(objects.statistics("jobs", "batch", second(3600)), fresh(3));
    }
}
