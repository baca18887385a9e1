//! What happened lately.

use evenkeel_gateway::observe::frame::{EventKind, Frame};

use crate::top::figures::clock;
use crate::top::grid::{Column, Grid, Tone};

pub(super) fn grid(frame: &Frame) -> Grid {
    let columns = [Column::right("time (UTC)", 1), Column::left("what", 0, 30)];
    let mut grid = Grid::new(&columns, "Nothing has happened: no change of objects, limits or upstreams.");
    for event in &frame.events {
        let tone = match event.kind {
            EventKind::UpstreamOut | EventKind::ObjectsRefused => Tone::Bad,
            EventKind::UpstreamBack => Tone::Good,
            EventKind::ServerChanged => Tone::Warn,
            EventKind::ObjectsChanged | EventKind::SettingsChanged | EventKind::LimitChanged => Tone::Normal,
        };
        let key = format!("{}\t{}", event.time_ms, event.text);
        grid.push(key, tone, [clock(event.time_ms), event.text.clone()]);
    }
    grid
}
