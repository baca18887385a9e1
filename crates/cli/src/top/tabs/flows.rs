//! The heaviest flows of the last minute.

use evenkeel_gateway::observe::frame::{DiagnosisState, Flow, Frame, Level};

use super::{Scope, flow_key, flow_name, unknown_or};
use crate::top::figures::{amount, float, percent, share};
use crate::top::grid::{Column, Grid, Tone};
use crate::top::source::ServerKind;
use crate::top::state::Top;

pub(super) fn grid(top: &Top, frame: &Frame, scope: Scope<'_>) -> Grid {
    let mut columns = vec![
        Column::left("flow", 0, 34),
        Column::left("schema", 4, 12),
        Column::right("seats", 1),
        Column::right("of level", 5),
        Column::right("waiting", 2),
    ];
    let names_level = scope == Scope::All;
    if names_level {
        columns.insert(2, Column::left("level", 3, 12));
    }
    // Kubernetes does not tell which flows are rejected.
    let has_rejections = top.kind == ServerKind::Gateway;
    if has_rejections {
        columns.push(Column::right("rejected/s", 2));
    }
    let has_costs = scope.levels(frame).any(|level| level.flows.iter().any(|flow| !flow.costs.is_empty()));
    if has_costs {
        columns.push(Column::right("cost/s", 3));
        columns.push(Column::right("expected/s", 6));
    }
    let mut grid = Grid::new(&columns, &unknown_or(top, "No flow has held seats or waited in the last minute."));
    let mut flows: Vec<(&Level, &Flow)> =
        scope.levels(frame).flat_map(|level| level.flows.iter().map(move |flow| (level, flow))).collect();
    flows.sort_by(|(_, a), (_, b)| weight(b).total_cmp(&weight(a)));
    for (level, flow) in flows {
        let tone = match flow {
            flow if flow.rejected > 0.0 && frame.diagnosis.state == DiagnosisState::Failing => Tone::Bad,
            flow if flow.rejected > 0.0 => Tone::Strong,
            flow if flow.waiting >= 0.05 => Tone::Warn,
            _ => Tone::Normal,
        };
        let held = if level.is_exempt() { "-".to_owned() } else { percent(share(flow.seats, float(level.current))) };
        let mut cells =
            vec![flow_name(flow).to_owned(), flow.schema.clone(), amount(flow.seats), held, amount(flow.waiting)];
        if names_level {
            cells.insert(2, level.name.clone());
        }
        if has_rejections {
            cells.push(amount(flow.rejected));
        }
        if has_costs {
            cells.extend(cost_cells(flow));
        }
        grid.push(flow_key(level, flow), tone, cells);
    }
    grid
}

/// The cost of a flow's requests, with the unit, and the expected cost.
fn cost_cells(flow: &Flow) -> [String; 2] {
    let join = |texts: Vec<String>| if texts.is_empty() { "-".to_owned() } else { texts.join(", ") };
    let cost = flow.costs.iter().map(|cost| format!("{} {}", amount(cost.rate), cost.unit));
    [join(cost.collect()), join(flow.costs.iter().map(|cost| amount(cost.expected)).collect())]
}

fn weight(flow: &Flow) -> f64 {
    flow.seats + flow.waiting
}
