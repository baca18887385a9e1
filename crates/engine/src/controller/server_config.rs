//! What a controller is told of its server: the seats, who divides them, and how often.

use crate::borrowing::{DivideSeats, FaithfulDivision};
use crate::time::{Nanos, SECOND};

/// How long after a division of the seats the next one is due in Kubernetes (CL-11).
pub const ADJUSTMENT_PERIOD: Nanos = 10 * SECOND;

/// The seats of a server and how they are divided among its levels.
///
/// ```
/// use evenkeel_engine::Engine;
/// use evenkeel_engine::borrowing::ExactDivision;
/// use evenkeel_engine::controller::ServerConfig;
/// use evenkeel_engine::time::{Instant, SECOND};
///
/// let now = Instant::from_nanos(0);
/// let config = ServerConfig::new(100).division(ExactDivision::default()).period(Some(SECOND));
/// let mut engine: Engine<(), _> = Engine::with_config(config, now);
/// assert_eq!(engine.next_timeout(), Some(now + SECOND));
/// ```
#[derive(Debug, Clone)]
pub struct ServerConfig<D = FaithfulDivision> {
    pub(super) server_limit: i64,
    pub(super) division: D,
    pub(super) period: Option<Nanos>,
}

// === impl ServerConfig ===

impl ServerConfig {
    /// A server with that many seats, which are divided as in Kubernetes, every ten seconds.
    pub fn new(server_limit: i64) -> Self {
        Self { server_limit, division: FaithfulDivision::default(), period: Some(ADJUSTMENT_PERIOD) }
    }
}

impl<D> ServerConfig<D> {
    /// The same, but the seats are divided in this way.
    #[must_use]
    pub fn division<E: DivideSeats>(self, division: E) -> ServerConfig<E> {
        ServerConfig { server_limit: self.server_limit, division, period: self.period }
    }

    /// The same, but the seats are divided so often; `None`: only when the objects or the seats change.
    #[must_use]
    pub fn period(self, period: Option<Nanos>) -> Self {
        Self { period, ..self }
    }
}
