//! `FlightNotes`: what a dump says of its requests beyond their records, by the places of those.

use std::collections::HashMap;

use evenkeel::events::CostKind;
use evenkeel::flight::{Flight, FlightFact, FlightRate};
use evenkeel_engine::time::Nanos;

/// The notes of a dump. Most requests have none.
#[derive(Debug)]
pub(crate) struct FlightNotes<'a> {
    flight: &'a Flight,
    rates: HashMap<usize, FlightRate>,
    costs: HashMap<usize, (f64, CostKind)>,
    others: HashMap<usize, u32>,
}

// === impl FlightNotes ===

impl<'a> FlightNotes<'a> {
    #[expect(clippy::cast_precision_loss, reason = "a cost")]
    pub(crate) fn new(flight: &'a Flight) -> Self {
        let (mut rates, mut costs, mut others) = (HashMap::new(), HashMap::new(), HashMap::new());
        for note in &flight.notes {
            let record = note.record as usize;
            match note.fact {
                FlightFact::Rate(rate) => {
                    rates.insert(record, rate);
                }
                FlightFact::Cost { thousandths, unit } => {
                    costs.insert(record, (thousandths as f64 / 1000.0, unit));
                }
                FlightFact::LongRunning { others: running } => {
                    others.insert(record, running);
                }
                FlightFact::Seats { .. } | FlightFact::Charge { .. } => {}
            }
        }
        Self { flight, rates, costs, others }
    }

    /// When a request arrived: before its record, if it waited for the rate of its flow.
    pub(crate) fn arrived(&self, record: usize) -> Nanos {
        let at = self.flight.records.get(record).map_or(0, |record| record.at);
        self.rate(record).map_or(at, |rate| rate.at.min(at))
    }

    pub(crate) fn rate(&self, record: usize) -> Option<FlightRate> {
        self.rates.get(&record).copied()
    }

    pub(crate) fn cost(&self, record: usize) -> Option<(f64, CostKind)> {
        self.costs.get(&record).copied()
    }

    /// How many other long-running requests its level had when a request arrived that is one.
    pub(crate) fn others(&self, record: usize) -> Option<u32> {
        self.others.get(&record).copied()
    }
}
