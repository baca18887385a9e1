//! The dump of queues (OB-12).

use std::sync::Arc;

use evenkeel_engine::queue_set::QueueView;

use super::table::Table;
use crate::control::level::Level;

const COLUMNS: [&str; 9] = [
    "PriorityLevelName",
    "Index",
    "PendingRequests",
    "ExecutingRequests",
    "SeatsInUse",
    "NextDispatchR",
    "InitialSeatsSum",
    "MaxSeatsSum",
    "TotalWorkSum",
];

pub(super) fn dump(levels: &[(Arc<str>, Arc<Level>)]) -> String {
    let mut table = Table::new(&COLUMNS);
    for (name, level) in levels {
        let core = level.lock();
        let set = core.queue_set();
        // Where each flow has a queue, numbers that no flow has at present say nothing.
        let is_shown = |queue: &QueueView| !set.mode().is_per_flow() || *queue != QueueView::default();
        let queues: Vec<_> = set.queues().enumerate().filter(|(_, queue)| is_shown(queue)).collect();
        drop(core);
        for (index, queue) in &queues {
            table.push(cells(name, *index, queue));
        }
    }
    table.text()
}

fn cells(level: &str, index: usize, queue: &QueueView) -> Vec<String> {
    vec![
        level.to_owned(),
        index.to_string(),
        queue.waiting.to_string(),
        queue.executing.to_string(),
        queue.seats_in_use.to_string(),
        queue.next_r.to_string(),
        queue.initial_seats_waiting.to_string(),
        queue.max_seats_waiting.to_string(),
        queue.work_waiting.to_string(),
    ]
}
