//! `ServerSettings`: the server that is simulated, and the service behind it.

use evenkeel_api::Preset;
use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::queue_set::NEWCOMER_WAIT;
use evenkeel_engine::time::{Nanos, SECOND};

use crate::auto_seats::AutoSettings;
use crate::known_objects::KnownObjects;
use crate::service::ServiceCurve;

/// The settings of a simulated server, and of the service that its requests run on.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerSettings {
    /// Which kind of server it is: how seats are divided, and what rejected clients are told.
    pub preset: Preset,
    /// The seats of the server.
    pub seats: i64,
    /// How levels borrow.
    pub borrowing: Borrowing,
    /// How long newcomers may have to wait for a seat before some are kept for them, in levels that queue per flow.
    pub newcomer_wait: Nanos,
    /// How the seats of the server find themselves; `None`: they stay as they are.
    pub auto: Option<AutoSettings>,
    /// How fast the service is.
    pub service: ServiceCurve,
    /// How many objects of each resource there are, for estimates.
    pub objects: KnownObjects,
    /// How wide the buckets of time series are. They get wider if there are too many.
    pub bucket_width: Nanos,
}

// === impl ServerSettings ===

impl ServerSettings {
    /// A server with that many seats, as one of Kubernetes, and a service without a limit of its own.
    pub fn new(seats: i64) -> Self {
        Self {
            preset: Preset::Kubernetes,
            seats,
            borrowing: Borrowing::Periodic,
            newcomer_wait: NEWCOMER_WAIT,
            auto: None,
            service: ServiceCurve::default(),
            objects: KnownObjects::default(),
            bucket_width: SECOND / 10,
        }
    }

    /// The server has so many seats, or finds out how many are right.
    #[must_use]
    pub fn concurrency(self, concurrency: &Concurrency) -> Self {
        let auto = concurrency.auto().map(|bounds| AutoSettings::new(bounds, concurrency.first()));
        Self { seats: concurrency.first().into(), auto, ..self }
    }
}
