//! The dump of queues (OB-12), which gateways have as well.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::dump_table::Table;

/// A queue of a level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Queue {
    pub(super) level: String,
    pub(super) index: u64,
    pub(super) waiting: u64,
    pub(super) executing: u64,
    pub(super) seats: u64,
}

pub(super) const PATH: &str = "/debug/api_priority_and_fairness/dump_queues";
/// Where each flow has a queue, there may be thousands.
const QUEUES_MAX: usize = 2000;

/// The queues in which something waits or runs, the longest first.
pub(super) fn read(dump: &str) -> Vec<Queue> {
    let is_used = |queue: &Queue| queue.waiting > 0 || queue.executing > 0 || queue.seats > 0;
    let mut queues = Table::new(dump).map(|row| {
        let queue = Queue {
            level: row.text("PriorityLevelName")?,
            index: row.number("Index")?,
            waiting: row.number("PendingRequests")?,
            executing: row.number("ExecutingRequests")?,
            seats: row.number("SeatsInUse")?,
        };
        is_used(&queue).then_some(queue)
    });
    sort(&mut queues);
    queues
}

/// The queues of several servers: those of the same level and number are added up.
pub(super) fn sum(servers: Vec<Vec<Queue>>) -> Vec<Queue> {
    let mut sums: BTreeMap<(String, u64), Queue> = BTreeMap::new();
    for queue in servers.into_iter().flatten() {
        match sums.entry((queue.level.clone(), queue.index)) {
            Entry::Vacant(slot) => drop(slot.insert(queue)),
            Entry::Occupied(mut sum) => {
                let sum = sum.get_mut();
                sum.waiting = sum.waiting.saturating_add(queue.waiting);
                sum.executing = sum.executing.saturating_add(queue.executing);
                sum.seats = sum.seats.saturating_add(queue.seats);
            }
        }
    }
    let mut queues: Vec<Queue> = sums.into_values().collect();
    sort(&mut queues);
    queues
}

/// The longest first, and no more than a screen can use.
fn sort(queues: &mut Vec<Queue>) {
    queues.sort_by(|a, b| {
        let rank = |queue: &Queue| (queue.waiting, queue.seats);
        rank(b).cmp(&rank(a)).then_with(|| (&a.level, a.index).cmp(&(&b.level, b.index)))
    });
    queues.truncate(QUEUES_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::kube::recorded;

    #[test]
    fn ob_12_recorded_queues() {
        let queues = read(&recorded("dump_queues"));
        let rows: Vec<_> =
            queues.iter().map(|queue| (queue.level.as_str(), queue.index, queue.waiting, queue.seats)).collect();
        // The longest first; queues in which nothing happens are left out.
        assert_eq!(rows, [("batch", 1, 6, 0), ("batch", 0, 5, 1), ("global-default", 68, 0, 1)]);
        assert_eq!(read("\u{1b}[2J\n,,,\nx"), []);
        let twice = sum(vec![queues.clone(), queues]);
        let rows: Vec<_> =
            twice.iter().map(|queue| (queue.level.as_str(), queue.index, queue.waiting, queue.seats)).collect();
        assert_eq!(rows, [("batch", 1, 12, 0), ("batch", 0, 10, 2), ("global-default", 68, 0, 2)]);
    }
}
