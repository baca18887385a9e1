//! The queues in which something waits or runs.

use crate::top::grid::{Column, Grid, Tone};
use crate::top::queues::Queue;

/// A bar is as long as that many requests at most.
const BAR_MAX: u64 = 40;

pub(super) fn grid(queues: &Result<Vec<Queue>, String>) -> Grid {
    let columns = [
        Column::left("level", 0, 16),
        Column::right("queue", 1),
        Column::right("waiting", 1),
        Column::right("running", 2),
        Column::right("seats", 3),
        Column::left("", 4, 16),
    ];
    let queues = match queues {
        Ok(queues) => queues.as_slice(),
        Err(why) => return Grid::new(&columns, &format!("Unknown: {why}")),
    };
    let mut grid = Grid::new(&columns, "No queue has waiting or running requests.");
    for queue in queues {
        let tone = if queue.waiting > 0 { Tone::Warn } else { Tone::Normal };
        let bar = usize::try_from(queue.waiting.min(BAR_MAX)).unwrap_or_default();
        grid.push(
            format!("{}\t{}", queue.level, queue.index),
            tone,
            [
                queue.level.clone(),
                queue.index.to_string(),
                queue.waiting.to_string(),
                queue.executing.to_string(),
                queue.seats.to_string(),
                "▪".repeat(bar),
            ],
        );
    }
    grid
}
