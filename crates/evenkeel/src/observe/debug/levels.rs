//! The dump of priority levels (OB-11).

use std::sync::Arc;

use evenkeel_engine::queue_set::Counters;

use super::table::Table;
use crate::control::level::Level;

/// The figures that are copied of a level.
struct Row {
    active_queues: usize,
    is_quiescing: bool,
    waiting: usize,
    executing: usize,
    counters: Counters,
}

const COLUMNS: [&str; 10] = [
    "PriorityLevelName",
    "ActiveQueues",
    "IsIdle",
    "IsQuiescing",
    "WaitingRequests",
    "ExecutingRequests",
    "DispatchedRequests",
    "RejectedRequests",
    "TimedoutRequests",
    "CancelledRequests",
];

pub(super) fn dump(levels: &[(Arc<str>, Arc<Level>)]) -> String {
    let mut table = Table::new(&COLUMNS);
    for (name, level) in levels {
        table.push(Row::of(level).cells(name));
    }
    table.text()
}

// === impl Row ===

impl Row {
    fn of(level: &Level) -> Self {
        let core = level.lock();
        let set = core.queue_set();
        let queues = 0..set.queues().len();
        Self {
            active_queues: queues.filter(|queue| set.queue_length(*queue) > 0).count(),
            is_quiescing: level.is_quiescing(),
            waiting: set.waiting(),
            executing: set.executing(),
            counters: set.counters(),
        }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        vec![
            name.to_owned(),
            self.active_queues.to_string(),
            (self.waiting == 0 && self.executing == 0).to_string(),
            self.is_quiescing.to_string(),
            self.waiting.to_string(),
            self.executing.to_string(),
            self.counters.dispatched.to_string(),
            self.counters.rejected.to_string(),
            // Nothing ever counts here (FQ-7).
            "0".to_owned(),
            self.counters.cancelled.to_string(),
        ]
    }
}
