//! `NewRequest` and `Class`: a request that arrives, and where it belongs.

use evenkeel_engine::time::Nanos;
use evenkeel_engine::{LevelId, WorkEstimate};

use crate::accounts::AccountKey;
use crate::level_record::LevelNumber;

/// A request that arrives.
///
/// Not `#[non_exhaustive]`: callers make it, and have to give all of it.
#[derive(Debug, Clone, Copy)]
pub struct NewRequest<T> {
    /// What the caller keeps with it.
    pub token: T,
    /// How much work it is for the service.
    pub service: Nanos,
    /// How long it takes elsewhere after that, with its seats and without a slot of the service.
    pub delay: Nanos,
    /// The seats that it takes. One that takes none starts at once.
    pub work: WorkEstimate,
    /// How long it waits at most; `None`: until it starts.
    pub patience: Option<Nanos>,
    /// The cost that it will have, in the unit of its flow schema; `None`: it is not known, so the request costs what is expected
    /// and teaches nothing.
    pub cost: Option<f64>,
    /// Whether it holds its seats for long: see [`level::NewRequest::is_long_running`](evenkeel_engine::level::NewRequest::is_long_running).
    pub is_long_running: bool,
    /// Its key where costs are learnt and flows have rates: see [`Simulator::account_key`](crate::Simulator::account_key).
    pub key: AccountKey,
}

/// The level and the flow of a request, under the current configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    pub(crate) id: LevelId,
    pub(crate) generation: u32,
    /// The level.
    pub level: LevelNumber,
    /// The place of the flow schema among those of [`Simulator::configuration`](crate::Simulator::configuration).
    pub schema: usize,
    /// The hash of its flow; 0 in a level that does not tell flows apart.
    pub flow_hash: u64,
    /// How many seats its flow gets for each one of a flow of weight 1.
    pub flow_weight: u16,
    pub(crate) seat_cap: Option<u32>,
    /// The seats of each request and how long it waits, if the objects say so (SF-2).
    pub(crate) seats: Option<u32>,
    pub(crate) wait_limit: Option<Nanos>,
    /// Whether costs and rates were decided about before.
    pub(crate) is_settled: bool,
}

// === impl Class ===

impl Class {
    /// The same for a request that was recorded: how long it waits is what the [request](NewRequest::patience) says, whatever the objects
    /// do, because timers were late; and its seats are those of the request, which have followed from costs already, as the rate of its flow
    /// has been taken.
    #[must_use]
    pub fn as_recorded(self) -> Self {
        Self { wait_limit: None, is_settled: true, ..self }
    }
}

// === impl NewRequest ===

impl<T> NewRequest<T> {
    /// A request that waits for as long as it takes.
    pub fn new(token: T, service: Nanos, work: WorkEstimate) -> Self {
        Self {
            token,
            service,
            delay: 0,
            work,
            patience: None,
            cost: None,
            is_long_running: false,
            key: AccountKey::default(),
        }
    }

    /// A request that waits for at most this long.
    #[must_use]
    pub fn patience(self, patience: Nanos) -> Self {
        Self { patience: Some(patience), ..self }
    }

    /// The same, but it costs so much, for flow schemas whose costs count.
    #[must_use]
    pub fn cost(self, cost: Option<f64>, key: AccountKey) -> Self {
        Self { cost, key, ..self }
    }

    /// The same, but it may hold its seats for long.
    #[must_use]
    pub fn long_running(self, is_long_running: bool) -> Self {
        Self { is_long_running, ..self }
    }

    /// The same, but it takes so long elsewhere in addition.
    #[must_use]
    pub fn delay(self, delay: Nanos) -> Self {
        Self { delay, ..self }
    }
}
