//! The flow schemas, and how many requests each has matched.

use evenkeel_gateway::observe::frame::Frame;

use crate::top::figures::amount;
use crate::top::grid::{Column, Grid, Tone};

pub(super) fn grid(frame: &Frame) -> Grid {
    let columns = [
        Column::left("schema", 0, 16),
        Column::left("level", 1, 16),
        Column::right("requests/s", 2),
        Column::right("in all", 3),
    ];
    let mut grid = Grid::new(&columns, "There are no flow schemas.");
    let all = frame.levels.iter().flat_map(|level| level.schemas.iter().map(move |schema| (level, schema)));
    let mut all: Vec<_> = all.collect();
    all.sort_by(|(_, a), (_, b)| b.rate.total_cmp(&a.rate).then(b.hits.cmp(&a.hits)));
    for (level, schema) in all {
        let (tone, hits) = match schema.hits {
            0 => (Tone::Faint, "never".to_owned()),
            hits => (Tone::Normal, hits.to_string()),
        };
        let key = format!("{}\t{}", level.name, schema.name);
        grid.push(key, tone, [schema.name.clone(), level.name.clone(), amount(schema.rate), hits]);
    }
    grid
}
