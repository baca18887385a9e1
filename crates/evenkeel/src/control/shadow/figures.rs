//! `Figures`: what became of requests in reality and in the shadow, altogether and for the heaviest flows, in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use evenkeel_engine::Histogram;
use evenkeel_engine::time::Nanos;

use crate::control::level_names::LevelKey;

/// All figures of a shadow.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    pub(crate) totals: Counts,
    pub(crate) rows: Vec<FlowRow>,
    by_key: HashMap<u64, u32>,
    /// How many requests belonged to flows that have no row any more.
    pub(crate) requests_of_others: u64,
    /// The requests by their level in reality and the index of their level in the shadow.
    pub(crate) moved: BTreeMap<(LevelKey, u32), u64>,
    names: HashMap<u64, FlowNames>,
}

/// The requests of one flow: that of a flow schema in reality, and of one in the shadow.
#[derive(Debug)]
pub(crate) struct FlowRow {
    key: u64,
    /// How many flows had the row before.
    epoch: u32,
    pub(crate) names: Option<FlowNames>,
    pub(crate) counts: Counts,
}

/// The names of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowNames {
    pub(crate) flow_schema: Arc<str>,
    pub(crate) flow: Arc<str>,
    pub(crate) level: Arc<str>,
    pub(crate) shadow_level: Arc<str>,
}

/// What became of some requests, in reality and in the shadow.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) requests: u64,
    pub(crate) real: Outcomes,
    pub(crate) shadow: Outcomes,
}

/// What became of some requests on one side.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcomes {
    pub(crate) rejected: u64,
    /// How long those waited that started.
    pub(crate) wait: Histogram,
}

/// The row in which a request is counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowRef {
    row: u32,
    epoch: u32,
}

/// Reality, or the shadow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Real,
    Shadow,
}

/// What became of a request on one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SideOutcome {
    Started { waited: Nanos },
    Rejected,
}

/// So many flows have a row. Two histograms of each take up to 60 kB.
pub(crate) const ROWS_MAX: usize = 256;
/// So many names are remembered of flows that have not been decided about yet.
const NAMES_MAX: usize = 4096;

// === impl Figures ===

impl Figures {
    /// A request has arrived, of the flow of this key.
    pub(crate) fn arrived(&mut self, key: u64, levels: (LevelKey, u32)) -> RowRef {
        self.totals.requests += 1;
        *self.moved.entry(levels).or_default() += 1;
        let row = self.row_of(key);
        let found = &mut self.rows[row as usize];
        found.counts.requests += 1;
        RowRef { row, epoch: found.epoch }
    }

    /// Counts what became of a request.
    pub(crate) fn note(&mut self, row: RowRef, side: Side, outcome: SideOutcome) {
        self.totals.note(side, outcome);
        if let Some(found) = self.rows.get_mut(row.row as usize).filter(|found| found.epoch == row.epoch) {
            found.counts.note(side, outcome);
        }
    }

    /// Sets the names of the flows of this key.
    pub(crate) fn learn_name(&mut self, key: u64, names: FlowNames) {
        if let Some(row) = self.by_key.get(&key) {
            self.rows[*row as usize].names = Some(names);
        } else {
            if self.names.len() >= NAMES_MAX {
                self.names.clear();
            }
            self.names.insert(key, names);
        }
    }

    /// The keys of flows whose names are missing.
    pub(crate) fn unnamed(&self) -> impl Iterator<Item = u64> + '_ {
        self.rows.iter().filter(|row| row.names.is_none()).map(|row| row.key)
    }

    fn row_of(&mut self, key: u64) -> u32 {
        if let Some(row) = self.by_key.get(&key) {
            return *row;
        }
        let names = self.names.remove(&key);
        let place = if self.rows.len() < ROWS_MAX {
            self.rows.push(FlowRow { key, epoch: 0, names, counts: Counts::default() });
            self.rows.len() - 1
        } else {
            // The lightest flow makes room. A heavy one that came late has soon more requests than those.
            let lightest = self.rows.iter().enumerate().min_by_key(|(_, row)| row.counts.requests);
            let place = lightest.map_or(0, |(place, _)| place);
            let row = &mut self.rows[place];
            self.requests_of_others += row.counts.requests;
            self.by_key.remove(&row.key);
            *row = FlowRow { key, epoch: row.epoch.wrapping_add(1), names, counts: Counts::default() };
            place
        };
        let row = u32::try_from(place).unwrap_or(0);
        self.by_key.insert(key, row);
        row
    }
}

// === impl Counts ===

impl Counts {
    fn note(&mut self, side: Side, outcome: SideOutcome) {
        let side = match side {
            Side::Real => &mut self.real,
            Side::Shadow => &mut self.shadow,
        };
        match outcome {
            SideOutcome::Started { waited } => side.wait.record(waited),
            SideOutcome::Rejected => side.rejected += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEVELS: (LevelKey, u32) = (LevelKey::from_bits(0), 0);

    #[test]
    fn the_heaviest_flows_have_rows_however_many_there_are() {
        let mut figures = Figures::default();
        for round in 0..2000_u64 {
            // One flow that comes again and again, among others that come once.
            for key in [7, 1_000_000 + round] {
                let row = figures.arrived(key, LEVELS);
                figures.note(row, Side::Real, SideOutcome::Started { waited: 5 });
                figures.note(row, Side::Shadow, SideOutcome::Rejected);
            }
        }
        assert_eq!(figures.rows.len(), ROWS_MAX);
        let heaviest = figures.rows.iter().max_by_key(|row| row.counts.requests).unwrap();
        assert_eq!((heaviest.key, heaviest.counts.requests, heaviest.counts.shadow.rejected), (7, 2000, 2000));
        let with_rows: u64 = figures.rows.iter().map(|row| row.counts.requests).sum();
        assert_eq!(with_rows + figures.requests_of_others, figures.totals.requests);
        assert_eq!(figures.totals.real.wait.count(), 4000);
    }

    #[test]
    fn a_request_that_ends_after_its_row_is_gone_counts_in_the_totals() {
        let mut figures = Figures::default();
        let late = figures.arrived(1, LEVELS);
        for key in 2..=ROWS_MAX as u64 + 1 {
            figures.arrived(key, LEVELS);
        }
        figures.note(late, Side::Real, SideOutcome::Rejected);
        assert_eq!(figures.totals.real.rejected, 1);
        assert!(figures.rows.iter().all(|row| row.counts.real.rejected == 0));
    }
}
