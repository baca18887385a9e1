//! The rule by which seats are divided among the levels, and how often that is done.

use std::fmt;
use std::sync::Arc;

use evenkeel_api::Preset;
use evenkeel_engine::borrowing::{DivideSeats, SeatDivision};
use evenkeel_engine::controller::{ADJUSTMENT_PERIOD, Borrowing, Controller, ServerConfig};
use evenkeel_engine::queue_set::NEWCOMER_WAIT;
use evenkeel_engine::time::Nanos;

/// The control plane of the engine, with any division of the seats.
pub(crate) type SeatController = Controller<Box<dyn DivideSeats + Send>>;

/// How the seats are to be divided.
#[derive(Clone)]
pub(crate) struct DivisionChoice {
    /// `None`: as the preset does.
    division: Option<Arc<MakeDivision>>,
    pub(crate) period: Option<Nanos>,
    /// `None`: as the preset does.
    pub(crate) borrowing: Option<Borrowing>,
    /// How long newcomers may have to wait for a seat before some are kept for them (PF-10).
    pub(crate) newcomer_wait: Nanos,
}

type MakeDivision = dyn Fn() -> Box<dyn DivideSeats + Send> + Send + Sync;

/// The default way to borrow: an ordinary service has no reason to wait ten seconds, and a Kubernetes API behaves as a
/// kube-apiserver.
pub(crate) fn preset_borrowing(preset: Preset) -> Borrowing {
    match preset {
        Preset::Plain | Preset::Llm => Borrowing::Immediate,
        Preset::Kubernetes => Borrowing::Periodic,
    }
}

// === impl DivisionChoice ===

impl DivisionChoice {
    /// Divides the seats in this way.
    pub(crate) fn set<D: DivideSeats + Clone + Send + Sync + 'static>(&mut self, division: D) {
        self.division = Some(Arc::new(move || Box::new(division.clone())));
    }

    /// The configuration of a controller.
    pub(crate) fn config(&self, preset: Preset, server_limit: i64) -> ServerConfig<Box<dyn DivideSeats + Send>> {
        let division = match &self.division {
            Some(make) => make(),
            None => Box::new(SeatDivision::from(preset)),
        };
        let borrowing = self.borrowing.unwrap_or_else(|| preset_borrowing(preset));
        let config = ServerConfig::new(server_limit).division(division).period(self.period).borrowing(borrowing);
        config.newcomer_wait(self.newcomer_wait)
    }
}

impl Default for DivisionChoice {
    fn default() -> Self {
        let period = Some(ADJUSTMENT_PERIOD);
        Self { division: None, period, borrowing: None, newcomer_wait: NEWCOMER_WAIT }
    }
}

impl fmt::Debug for DivisionChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_own = self.division.is_some();
        let mut shown = f.debug_struct("DivisionChoice");
        shown.field("is_own", &is_own).field("period", &self.period).field("borrowing", &self.borrowing);
        shown.field("newcomer_wait", &self.newcomer_wait).finish()
    }
}
