//! The builders inside a priority level: its limits, its queues, and the seats of the exempt level.

use std::marker::PhantomData;

use super::state::{HasResponse, NoResponse, ResponseIsOpen, WithResponse};
use crate::v1::{
    ExemptPriorityLevelConfiguration, LimitResponse, LimitResponseType, LimitedPriorityLevelConfiguration,
    QueuingConfiguration,
};

/// Builds the limits of a level.
///
/// ```
/// use evenkeel_api::v1::PriorityLevelConfiguration;
///
/// let level = PriorityLevelConfiguration::builder("tenants")
///     .limited(|l| l.shares(40).lendable_percent(25).borrowing_limit_percent(100).queue(|q| q.queues(128).hand_size(6)))
///     .build();
/// assert_eq!(level.spec.limited.unwrap().borrowing_limit_percent, Some(100));
/// ```
#[derive(Debug, Clone)]
#[must_use = "the limits do nothing unless they are returned from the closure"]
pub struct LimitedBuilder<Response> {
    limited: LimitedPriorityLevelConfiguration,
    state: PhantomData<fn() -> Response>,
}

/// Builds the queues of a level.
#[derive(Debug, Clone)]
#[must_use = "the queues do nothing unless they are returned from the closure"]
pub struct QueueBuilder(QueuingConfiguration);

/// Builds the seats of the exempt level.
#[derive(Debug, Clone)]
#[must_use = "the seats do nothing unless they are returned from the closure"]
pub struct ExemptBuilder(ExemptPriorityLevelConfiguration);

// === impl LimitedBuilder ===

impl LimitedBuilder<NoResponse> {
    pub(super) fn new() -> Self {
        Self { limited: LimitedPriorityLevelConfiguration::default(), state: PhantomData }
    }
}

impl<Response> LimitedBuilder<Response> {
    /// The level's share of the server's seats; 30 if nothing is said. With 0, it has none of its own.
    pub fn shares(mut self, shares: i32) -> Self {
        self.limited.nominal_concurrency_shares = Some(shares);
        self
    }

    /// How much of the level's own seats others may borrow while they are idle, in percent from 0 to 100; 0 if
    /// nothing is said.
    pub fn lendable_percent(mut self, percent: i32) -> Self {
        self.limited.lendable_percent = Some(percent);
        self
    }

    /// How many seats the level may borrow from others, in percent of its own; as many as there are if nothing is
    /// said.
    pub fn borrowing_limit_percent(mut self, percent: i32) -> Self {
        self.limited.borrowing_limit_percent = Some(percent);
        self
    }

    /// A request that finds no seat waits in a queue. `queue(|q| q)` leaves the queues at their defaults.
    pub fn queue(self, describe: impl FnOnce(QueueBuilder) -> QueueBuilder) -> LimitedBuilder<WithResponse>
    where
        Response: ResponseIsOpen,
    {
        let queuing = describe(QueueBuilder(QueuingConfiguration::default())).0;
        self.with_response(LimitResponse { response: LimitResponseType::Queue, queuing: Some(queuing) })
    }

    /// If all seats are taken, a request is rejected at once.
    pub fn reject(self) -> LimitedBuilder<WithResponse>
    where
        Response: ResponseIsOpen,
    {
        self.with_response(LimitResponse { response: LimitResponseType::Reject, queuing: None })
    }

    fn with_response(mut self, response: LimitResponse) -> LimitedBuilder<WithResponse> {
        self.limited.limit_response = response;
        LimitedBuilder { limited: self.limited, state: PhantomData }
    }
}

impl<Response: HasResponse> LimitedBuilder<Response> {
    pub(super) fn into_limited(self) -> LimitedPriorityLevelConfiguration {
        self.limited
    }
}

// === impl QueueBuilder ===

impl QueueBuilder {
    /// How many queues there are; 64 if nothing is said.
    pub fn queues(mut self, queues: i32) -> Self {
        self.0.queues = queues;
        self
    }

    /// How many queues are dealt to each flow; 8 if nothing is said.
    pub fn hand_size(mut self, hand_size: i32) -> Self {
        self.0.hand_size = hand_size;
        self
    }

    /// How many requests may wait in one queue; 50 if nothing is said.
    pub fn queue_length_limit(mut self, requests: i32) -> Self {
        self.0.queue_length_limit = requests;
        self
    }
}

// === impl ExemptBuilder ===

impl ExemptBuilder {
    pub(super) fn new() -> Self {
        Self(ExemptPriorityLevelConfiguration::default())
    }

    /// The level's share of the server's seats; 0 if nothing is said.
    pub fn shares(mut self, shares: i32) -> Self {
        self.0.nominal_concurrency_shares = Some(shares);
        self
    }

    /// How much of the level's own seats others may borrow while they are idle, in percent from 0 to 100; 0 if
    /// nothing is said.
    pub fn lendable_percent(mut self, percent: i32) -> Self {
        self.0.lendable_percent = Some(percent);
        self
    }

    pub(super) fn into_exempt(self) -> ExemptPriorityLevelConfiguration {
        self.0
    }
}
