//! The tab of delays: which flow delays which.

use evenkeel_gateway::observe::frame::{Delay, Frame, Level};

use super::{Scope, flow_key, flow_name, unknown_or};
use crate::top::figures::{amount, percent};
use crate::top::grid::{Column, Grid, Tone};
use crate::top::state::Top;

pub(super) fn grid(top: &Top, frame: &Frame, scope: Scope<'_>) -> Grid {
    let mut columns = vec![
        Column::left("who waits", 0, 24),
        Column::left("behind", 1, 24),
        Column::right("seconds", 2),
        Column::right("of its level", 3),
    ];
    let names_level = scope == Scope::All;
    if names_level {
        columns.insert(2, Column::left("level", 4, 12));
    }
    let mut grid = Grid::new(&columns, &unknown_or(top, "No request has waited in the last minute."));
    let mut delays: Vec<(&Level, &Delay)> =
        scope.levels(frame).flat_map(|level| level.delays.iter().map(move |delay| (level, delay))).collect();
    delays.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    for (level, delay) in delays {
        let Some(waiter) = level.flows.get(delay.waiter) else { continue };
        let behind = behind(level, delay);
        let key = format!("{}\n{behind}", flow_key(level, waiter));
        let mut cells =
            vec![flow_name(waiter).to_owned(), behind.to_owned(), amount(delay.seconds), percent(delay.share)];
        if names_level {
            cells.insert(2, level.name.clone());
        }
        let tone = if delay.by == Some(delay.waiter) { Tone::Normal } else { Tone::Warn };
        grid.push(key, tone, cells);
    }
    grid
}

/// The flow that another one waited behind.
pub(in crate::top) fn behind<'a>(level: &'a Level, delay: &Delay) -> &'a str {
    match delay.by {
        Some(by) if by == delay.waiter => "its own requests",
        by => by.and_then(|by| level.flows.get(by)).map_or("others", flow_name),
    }
}
