//! Requests from a stream, as a log has them: each with its time, its caller, and how long the service took.

use evenkeel_engine::time::Nanos;
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};

use crate::{NewRequest, Outcomes, Simulator};

/// Who asks for what: all that classification and estimates depend on.
///
/// Not `#[non_exhaustive]`: code that reads a log makes it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Caller {
    /// Who asks.
    pub user: User,
    /// What is asked for.
    pub request: RequestInfo<'static>,
    /// The query of the URL, without the question mark.
    pub query: Box<str>,
}

/// A request of a stream. `C` gives its caller: a [`Caller`], or something that shares one, such as an `Arc<Caller>`.
///
/// Not `#[non_exhaustive]`: code that reads a log makes them.
#[derive(Debug, Clone)]
pub struct StreamRequest<T, C> {
    /// When it arrives. A request that is earlier than the one before it arrives together with that one.
    pub at: Nanos,
    /// Who asks for what.
    pub caller: C,
    /// How much work it is for the service.
    pub service: Nanos,
    /// The seats that it takes; `None`: as the engine estimates them.
    pub work: Option<WorkEstimate>,
    /// How long it waits at most; `None`: until it starts.
    pub patience: Option<Nanos>,
    /// The cost that it will have, in the unit of its flow schema, if that is known.
    pub cost: Option<f64>,
    /// What the caller keeps with it.
    pub token: T,
}

/// Lets all requests of a stream arrive, and lets time pass until the last has ended. Memory does not depend on how many there
/// are, but on how many are under way at a time.
///
/// A program that classifies many requests of few callers should keep their classes and call [`Simulator::arrive`] directly.
pub fn run_stream<T: Copy, C: AsRef<Caller>>(
    simulator: &mut Simulator<T>,
    requests: impl IntoIterator<Item = StreamRequest<T, C>>,
    outcomes: &mut impl Outcomes<T>,
) {
    for StreamRequest { at, caller, service, work, patience, cost, token } in requests {
        simulator.run_until(at, outcomes);
        let Caller { user, request, query } = caller.as_ref();
        let class = simulator.classify(Attributes { user, request });
        let work = work.unwrap_or_else(|| simulator.estimate(request, query, class));
        let key = simulator.account_key(Attributes { user, request }, class);
        let new = NewRequest { patience, ..NewRequest::new(token, service, work).cost(cost, key) };
        simulator.arrive(at, class, new, outcomes);
    }
    simulator.drain(outcomes);
}

impl AsRef<Self> for Caller {
    fn as_ref(&self) -> &Self {
        self
    }
}
