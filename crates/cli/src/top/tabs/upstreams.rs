//! The upstreams of a gateway.

use evenkeel_gateway::observe::frame::{Frame, Upstream};

use crate::top::figures::{amount, clock, milliseconds};
use crate::top::grid::{Column, Grid, Tone};
use crate::top::source::ServerKind;
use crate::top::state::Top;

pub(super) fn grid(top: &Top, frame: &Frame) -> Grid {
    let columns = [
        Column::left("upstream", 0, 16),
        Column::left("state", 1, 20),
        Column::right("responses/s", 3),
        Column::right("errors/s", 2),
        Column::right("latency", 1),
        Column::right("usually", 2),
        Column::right("since", 4),
    ];
    let empty = match top.kind {
        ServerKind::Gateway => "There are no upstreams.",
        ServerKind::Kube { .. } => "A kube-apiserver has no upstreams.",
    };
    let mut grid = Grid::new(&columns, empty);
    for upstream in &frame.upstreams {
        let time = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), milliseconds);
        let (tone, state) = match upstream {
            Upstream { out_cause: Some(cause), .. } => (Tone::Bad, cause.words()),
            upstream if upstream.is_out => (Tone::Bad, "down"),
            upstream if failures(upstream) > 0.0 => (Tone::Bad, "failing"),
            upstream if upstream.changed_ms.is_some() => (Tone::Warn, "slower"),
            _ => (Tone::Normal, "up"),
        };
        grid.push(
            upstream.name.clone(),
            tone,
            [
                upstream.name.clone(),
                state.to_owned(),
                amount(upstream.responses),
                amount(failures(upstream)),
                time(upstream.latency_ms),
                time(upstream.latency_before_ms),
                upstream.changed_ms.map(clock).unwrap_or_default(),
            ],
        );
    }
    grid
}

/// Requests that it failed, per second.
fn failures(upstream: &Upstream) -> f64 {
    upstream.errors + upstream.timeouts + upstream.unreachable + upstream.cut
}
