//! A workload: who sends which requests when, how long they take, and what happens meanwhile.
//!
//! [`Workload::parse`] reads one from YAML or JSON, and reports everything that is wrong with it at once, each fault with its
//! line, column and field.

mod distribution;
mod draws;
mod fields;
mod instances;
mod read;
mod read_flow;

pub use distribution::Distribution;
pub use draws::Draws;
pub use instances::{INSTANCES_MAX, Instances};

use std::sync::Arc;

use evenkeel_engine::time::{Nanos, SECOND};

use crate::service::ServiceCurve;
use crate::stream::Caller;

/// A workload.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Workload {
    /// The name of the workload.
    pub name: String,
    /// How long it is run.
    pub span: Nanos,
    /// The time at the beginning that is not counted.
    pub warmup: Nanos,
    /// How fast the service is.
    pub service: ServiceCurve,
    /// How many objects of each resource there are, and their average size in bytes, for estimates.
    pub objects: Vec<(String, i64, i64)>,
    /// The instances that share the seats of the service; `None` for one server.
    pub instances: Option<Instances>,
    /// The flows that send requests.
    pub flows: Vec<FlowGroup>,
    /// What happens meanwhile, in the order of time.
    pub events: Vec<Event>,
    /// After so many events of the simulation it ends early.
    pub simulated_events_max: u64,
}

/// A few minutes of work. A client without pauses and service times sends a million requests a second.
pub const SIMULATED_EVENTS_MAX: u64 = 300_000_000;

/// A row of the report: one flow, or several of a kind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct FlowGroup {
    /// The name of the row.
    pub name: String,
    /// How many flows of the kind there are.
    pub count: u32,
    /// Who asks for what. If there are several flows, each has a user of its own: see [`caller_of`](Self::caller_of).
    pub caller: Caller,
    /// The seats of a request, 0 if it takes none; `None`: as the engine estimates them.
    pub seats: Option<u32>,
    /// When requests come.
    pub arrivals: Arrivals,
    /// How long the service works on a request.
    pub service: Distribution,
    /// What a request costs, in the unit of its flow schema; `None`: nothing.
    pub cost: Option<Distribution>,
    /// How long a request takes elsewhere after that, with its seats and without a slot of the service.
    pub delay: Nanos,
    /// How long a request waits at most; `None`: as long as [`PATIENCE_DEFAULT`].
    pub patience: Option<Nanos>,
    /// What a client does after a rejection.
    pub on_rejection: OnRejection,
    /// The instances that get its requests, in turns; all if there are none here.
    pub instances: Vec<u32>,
    /// When the first requests come.
    pub from: Nanos,
    /// From when on no more requests come.
    pub to: Nanos,
}

/// When the requests of one flow come.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Arrivals {
    /// So many clients; each sends its next request some time after the one before has ended.
    Closed {
        /// How many clients.
        clients: u32,
        /// The pause between two requests of a client.
        think: Nanos,
    },
    /// At random times.
    Poisson {
        /// Requests a second, on average.
        rate: f64,
    },
    /// At regular times.
    Periodic {
        /// The time from one to the next.
        every: Nanos,
    },
    /// All at once.
    Burst {
        /// When.
        at: Nanos,
        /// How many.
        requests: u32,
    },
    /// When they were recorded, in the order of time. Their service times and costs take the place of the group's.
    Recorded(Arc<[RecordedRequest]>),
}

/// A request that really arrived.
///
/// Not `#[non_exhaustive]`: code that reads a recording makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedRequest {
    /// When it arrived.
    pub at: Nanos,
    /// How long the service worked on it.
    pub service: Nanos,
    /// What it cost, if the [group](FlowGroup::cost) says that costs are known.
    pub cost: i64,
}

/// What a client does when a request is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnRejection {
    /// The client tries again when the response said so.
    HonourRetryAfter,
    /// The client tries again as soon as it has the response: after [`RESPONSE_TIME`].
    Ignore,
    /// The client tries again after a pause that doubles each time, of which a random part of up to a half is left out.
    Backoff {
        /// The first pause.
        base: Nanos,
        /// The longest pause.
        max: Nanos,
    },
    /// The client does not try again.
    GiveUp,
}

/// Something that happens at a given time.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// When.
    pub at: Nanos,
    /// What.
    pub change: Change,
}

/// What an event changes.
///
/// Not `#[non_exhaustive]`: code that runs a workload has to know every change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The server follows the objects of this file from then on. The path is as it is written.
    Apply(String),
    /// The service works on so many requests at a time; `None` for no limit of its own.
    Slots(Option<u32>),
    /// All requests fail that the service starts, or none.
    Failing(bool),
    /// The server has so many seats.
    Concurrency(u32),
}

/// How long a request waits if the workload does not say: as long as a Kubernetes API lets it (HF-6).
pub const PATIENCE_DEFAULT: Nanos = 15 * SECOND;

/// The time from a rejection to what its client does next, at least. Without it, a client that ignores rejections would send
/// requests without end at one point in time.
pub const RESPONSE_TIME: Nanos = SECOND / 1000;

// === impl Workload ===

impl Workload {
    /// Recorded requests, for a service without a limit of its own.
    pub fn recorded(name: impl Into<String>, span: Nanos, flows: Vec<FlowGroup>) -> Self {
        Self {
            name: name.into(),
            span,
            warmup: 0,
            service: ServiceCurve::default(),
            objects: Vec::new(),
            instances: None,
            flows,
            events: Vec::new(),
            simulated_events_max: SIMULATED_EVENTS_MAX,
        }
    }
}

// === impl FlowGroup ===

impl FlowGroup {
    /// One flow whose requests arrived at recorded times. Its clients do not try again: the requests that they sent again were recorded too.
    pub fn recorded(name: impl Into<String>, caller: Caller, seats: u32, requests: Arc<[RecordedRequest]>) -> Self {
        Self {
            name: name.into(),
            count: 1,
            caller,
            seats: Some(seats),
            arrivals: Arrivals::Recorded(requests),
            service: Distribution::Fixed(0),
            cost: None,
            delay: 0,
            patience: None,
            on_rejection: OnRejection::GiveUp,
            instances: Vec::new(),
            from: 0,
            to: Nanos::MAX,
        }
    }

    /// The caller of one of its flows. Of several flows, each is told apart by a number after the name of its user.
    pub fn caller_of(&self, number: u32) -> Caller {
        let mut caller = self.caller.clone();
        if self.count > 1 {
            caller.user.name = format!("{}-{number}", caller.user.name).into();
        }
        caller
    }
}
