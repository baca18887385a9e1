//! Who divides the seats among the levels, and how often.

use std::fmt;
use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_engine::borrowing::{DivideSeats, SeatDivision};
use evenkeel_engine::controller::{ADJUSTMENT_PERIOD, Controller, ServerConfig};
use evenkeel_engine::time::Nanos;

/// The control plane of the engine, with whatever divides the seats.
pub(crate) type SeatController = Controller<Box<dyn DivideSeats + Send>>;

/// How the seats are to be divided.
#[derive(Clone)]
pub(crate) struct DivisionChoice {
    /// `None`: as the preset does.
    division: Option<Arc<MakeDivision>>,
    pub(crate) period: Option<Nanos>,
}

type MakeDivision = dyn Fn() -> Box<dyn DivideSeats + Send> + Send + Sync;

// === impl DivisionChoice ===

impl DivisionChoice {
    /// Divides the seats in this way.
    pub(crate) fn set<D: DivideSeats + Clone + Send + Sync + 'static>(&mut self, division: D) {
        self.division = Some(Arc::new(move || Box::new(division.clone())));
    }

    /// What a controller is told.
    pub(crate) fn config(&self, preset: Preset, server_limit: i64) -> ServerConfig<Box<dyn DivideSeats + Send>> {
        let division = match &self.division {
            Some(make) => make(),
            None => Box::new(SeatDivision::from(preset)),
        };
        ServerConfig::new(server_limit).division(division).period(self.period)
    }
}

impl Default for DivisionChoice {
    fn default() -> Self {
        Self { division: None, period: Some(ADJUSTMENT_PERIOD) }
    }
}

impl fmt::Debug for DivisionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_own = self.division.is_some();
        f.debug_struct("DivisionChoice").field("is_own", &is_own).field("period", &self.period).finish()
    }
}
