//! Seats can be divided in another way than Kubernetes does, and all the rest stays as it is.

use crate::busy_engine;

use busy_engine::{objects, rejecting};
use evenkeel_engine::borrowing::{AdjustedLevel, Adjustment, DivideSeats, LevelDemand};
use evenkeel_engine::controller::{ADJUSTMENT_PERIOD, ServerConfig};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::Arrival;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Engine, Ticket, WorkEstimate};

/// Every level gets so many seats, whatever its shares are.
#[derive(Debug)]
struct Each(i64);

impl DivideSeats for Each {
    fn divide(&mut self, levels: &[LevelDemand], adjustment: &mut Adjustment) {
        adjustment.fair_fraction = 0.0;
        adjustment.levels.clear();
        adjustment.levels.resize(levels.len(), AdjustedLevel { current: self.0, min_current: self.0, target: None });
    }
}

/// How many of a hundred requests a level takes when nobody else asks for anything, on a server of a hundred seats.
fn admitted<D: DivideSeats>(mut engine: Engine<u32, D>) -> usize {
    let mut nothing = |_: Ticket, _: &mut u32| {};
    let start = Instant::from_nanos(0);
    engine.apply(objects(&[rejecting("batch", 95), rejecting("other", 100)], &[]), start, &mut nothing);
    engine.adjust(start + ADJUSTMENT_PERIOD, &mut nothing);
    let batch = engine.controller().level("batch").expect("it was given").id();
    let new = NewRequest::new(0, WorkEstimate::ONE_SEAT);
    let mut arrive = |number| engine.arrive(start + ADJUSTMENT_PERIOD, batch, new, number, &mut nothing);
    (0..100).filter(|&number| matches!(arrive(number), Some(Arrival::Started { .. }))).count()
}

#[test]
fn an_engine_divides_seats_as_it_is_told() {
    let now = Instant::from_nanos(0);
    assert_eq!(admitted(Engine::new(100, now)), 48, "95 of 200 shares");
    assert_eq!(admitted(Engine::with_config(ServerConfig::new(100).division(Each(7)), now)), 7);
}
