//! Listeners: the seam for code that wants to know what happens in levels.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{Attributes, LevelId, WorkEstimate};

use super::event::Event;
use crate::control::limit::Pulse;

/// Gets the events of one level. Give [`FlowControlBuilder::listen`](crate::FlowControlBuilder::listen) a closure that makes a
/// listener for each level.
///
/// A listener is called by the threads that serve requests, one at a time, while no lock is held that decisions about requests need. It
/// should be quick all the same: while it works, events pile up, and at some hundreds of them requests wait for it. A listener
/// that needs longer copies what it needs and does the rest elsewhere.
///
/// A listener must not call the flow control: it would wait for itself. A listener that panics gets no further events.
pub trait Listener: Send {
    /// The events since the last call, in their order. The events of [one call](Event::is_last) are never split.
    fn on_events(&mut self, events: &[Event]);
}

/// Sees requests as they arrive, with everything that they are classified by. Give it to
/// [`FlowControlBuilder::listen_to_arrivals`](crate::FlowControlBuilder::listen_to_arrivals).
///
/// Events have numbers only: texts would have to be copied for each. This listener is called by the thread of the request, with
/// the texts that the thread has anyway, when no lock is held; so several threads call it at the same time, and not quite in the
/// order of [`Arrival::at`].
pub trait ArrivalListener: Send + Sync {
    /// A request has arrived, and runs, waits or was rejected.
    fn on_arrival(&self, arrival: &Arrival<'_>);
}

/// A request that has arrived at a level.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Arrival<'a> {
    /// Who asks, and for what.
    pub attributes: Attributes<'a>,
    /// The name of the flow schema that it belongs to.
    pub flow_schema: &'a str,
    /// The level that it belongs to.
    pub level: LevelId,
    /// What tells its flow from the others of its schema.
    pub flow_distinguisher: &'a str,
    /// The hash of its flow, as in its [events](super::EventKind::Passed).
    pub flow_hash: u64,
    /// The seats that it was estimated to take.
    pub work: WorkEstimate,
    /// The id of the request in its events; `None` if it was rejected at once.
    pub request: Option<RequestId>,
    pub(crate) at: Instant,
}

/// Makes the listeners of each level.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    /// Whether flows are attributed: who uses a level, and who delays whom.
    pub(crate) attributes_flows: bool,
    /// The pulse of the limit that finds itself, if there is one.
    pub(crate) limit: Option<Arc<Pulse>>,
    pub(crate) others: Vec<MakeListener>,
    pub(crate) arrivals: ArrivalsTo,
}

/// The listener that is told of arrivals, if there is one.
#[derive(Clone, Default)]
pub(crate) struct ArrivalsTo(pub(crate) Option<Arc<dyn ArrivalListener>>);

pub(crate) type MakeListener = Arc<dyn Fn(LevelId, &str) -> Box<dyn Listener> + Send + Sync>;

// === impl Arrival ===

impl Arrival<'_> {
    /// When it arrived, by the clock of the flow control, and the same as the time of its event.
    pub fn at(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.at.as_nanos()).unwrap_or(0))
    }
}

// === impl Listener ===

impl<F: FnMut(&[Event]) + Send> Listener for F {
    fn on_events(&mut self, events: &[Event]) {
        self(events);
    }
}

// === impl ArrivalListener ===

impl<F: Fn(&Arrival<'_>) + Send + Sync> ArrivalListener for F {
    fn on_arrival(&self, arrival: &Arrival<'_>) {
        self(arrival);
    }
}

// === impl Listeners ===

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners")
            .field("attributes_flows", &self.attributes_flows)
            .field("limit", &self.limit)
            .field("others", &self.others.len())
            .field("arrivals", &self.arrivals)
            .finish()
    }
}

// === impl ArrivalsTo ===

impl fmt::Debug for ArrivalsTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArrivalsTo").field(&self.0.is_some()).finish()
    }
}
