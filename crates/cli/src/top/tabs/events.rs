//! The tab of the latest events.

use evenkeel_gateway::observe::frame::{EventKind, Frame};

use crate::top::figures::clock;
use crate::top::grid::{Column, Grid, Tone};

pub(super) fn grid(frame: &Frame) -> Grid {
    let columns = [Column::right("time (UTC)", 1), Column::left("what", 0, 30)];
    let mut grid = Grid::new(&columns, "Nothing has happened: no change of objects, limits or upstreams.");
    let decisions = frame.server.limit.iter().flat_map(|limit| &limit.steps);
    let decided = decisions.map(|step| (step.time_ms, Tone::Normal, format!("limit: {}", step.text)));
    // A decision of the limit says more than the change of the number.
    let is_told = |kind: EventKind| kind != EventKind::LimitChanged || frame.server.limit.is_none();
    let happened = frame.events.iter().filter(|event| is_told(event.kind)).map(|event| {
        let tone = match event.kind {
            EventKind::UpstreamOut | EventKind::ObjectsRefused => Tone::Bad,
            EventKind::UpstreamBack => Tone::Good,
            EventKind::ServerChanged => Tone::Warn,
            EventKind::ObjectsChanged | EventKind::SettingsChanged | EventKind::LimitChanged => Tone::Normal,
        };
        (event.time_ms, tone, event.text.clone())
    });
    let mut all: Vec<_> = decided.chain(happened).collect();
    all.sort_by_key(|(time_ms, ..)| std::cmp::Reverse(*time_ms));
    for (time_ms, tone, text) in all {
        grid.push(format!("{time_ms}\t{text}"), tone, [clock(time_ms), text]);
    }
    grid
}
