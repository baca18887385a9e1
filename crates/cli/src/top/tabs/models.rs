//! The language models behind a gateway.

use evenkeel_gateway::observe::frame::Frame;

use crate::top::figures::amount;
use crate::top::grid::{Column, Grid, Tone};

pub(super) fn grid(frame: &Frame) -> Grid {
    let columns = [
        Column::left("model", 0, 16),
        Column::right("running", 2),
        Column::right("prompt tokens/s", 1),
        Column::right("output tokens/s", 1),
    ];
    let mut grid = Grid::new(&columns, "No language model has responded yet.");
    for model in &frame.models {
        let tone = if model.running > 0 { Tone::Normal } else { Tone::Faint };
        let cells = [model.running.to_string(), amount(model.prompt), amount(model.output)];
        grid.push(model.name.clone(), tone, std::iter::once(model.name.clone()).chain(cells));
    }
    grid
}
