//! A request that is about to arrive: who asks for what, how much work it is, and how long it may wait.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread::LocalKey;
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Attributes, LevelInfo, Schema, User, WorkEstimate};

use crate::control::clock::nanos;
use crate::control::cost_source::Costing;
use crate::control::counts::{Access, Mark};
use crate::control::digests::DigestId;
use crate::control::reused_box::{Reusable, SpareBoxes};
use crate::control::seat_times::SeatTimes;
use crate::control::snapshot::Destination;
use crate::control::work::EstimateWork;

/// A request that is about to arrive.
///
/// ```
/// use evenkeel::request::{FlowRequest, Patience};
/// use evenkeel::{Attributes, RequestInfo, User, WorkEstimate};
///
/// let (user, info) = (User::default(), RequestInfo::default());
/// let request = FlowRequest::new(Attributes { user: &user, request: &info })
///     .work(WorkEstimate::seats(3))
///     .patience(Patience::deadline_in(std::time::Duration::from_secs(8)));
/// ```
#[derive(Debug, Clone)]
pub struct FlowRequest<'a, W = WorkEstimate> {
    pub(crate) attributes: Attributes<'a>,
    pub(crate) work: W,
    pub(crate) patience: Patience,
    /// The details, in a box: most requests have none, and requests are passed on by value.
    pub(crate) details: Option<Box<Details>>,
    pub(crate) run_length: RunLength,
    pub(crate) watches: Option<u64>,
    pub(crate) times: Option<Arc<SeatTimes>>,
}

/// How long a request is expected to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RunLength {
    Ordinary,
    /// The request is expected to run for as long as a connection lasts, as after an upgrade.
    Long,
    /// For long, and its execution is only its beginning (HF-9).
    Watch,
}

/// How long a request may wait in its queue (HF-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Patience {
    /// How long ago the server received the request.
    pub received_ago: Duration,
    /// The time from now on after which the response is no longer wanted, if there is such a time.
    pub deadline_in: Option<Duration>,
    /// How long the request waits at most if it has no deadline; `None`: as the
    /// [flow control](crate::FlowControlBuilder::wait_limit) says.
    pub wait_limit: Option<Duration>,
}

/// What the dumps of a server show of a request beyond what it is classified by. Cloning the parts of an HTTP request
/// into it allocates nothing.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Details {
    /// Who asks.
    pub user: Arc<User>,
    /// The method.
    pub method: http::Method,
    /// The target.
    pub uri: http::Uri,
}

/// The same, borrowed from the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) user: &'a Arc<User>,
    pub(crate) method: &'a http::Method,
    pub(crate) uri: &'a http::Uri,
}

/// A request on its way in.
#[derive(Debug)]
pub(crate) struct Incoming<'a, E> {
    pub(crate) attributes: Attributes<'a>,
    /// Estimates its work, once its level is known.
    pub(crate) estimate: E,
    pub(crate) patience: &'a Patience,
    pub(crate) head: Option<Head<'a>>,
    pub(crate) digest: DigestId,
    pub(crate) run_length: RunLength,
    pub(crate) watches: Option<u64>,
    /// Where the times of the request are noted, if its caller wants to know them.
    pub(crate) times: Option<&'a Arc<SeatTimes>>,
    /// Whether it has waited for the rate of its flow.
    pub(crate) is_within_rate: bool,
    /// Its cost, as far as it is known.
    pub(crate) costing: Costing<'a>,
}

// === impl FlowRequest ===

impl<'a> FlowRequest<'a> {
    /// An ordinary request: one seat, and nothing known about how long it makes sense.
    pub fn new(attributes: Attributes<'a>) -> Self {
        Self {
            attributes,
            work: WorkEstimate::ONE_SEAT,
            patience: Patience::default(),
            details: None,
            run_length: RunLength::Ordinary,
            watches: None,
            times: None,
        }
    }
}

impl<'a, W> FlowRequest<'a, W> {
    /// How much work it is.
    #[must_use]
    pub fn work<V: EstimateWork>(self, work: V) -> FlowRequest<'a, V> {
        let Self { attributes, work: _, patience, details, run_length, watches, times } = self;
        FlowRequest { attributes, work, patience, details, run_length, watches, times }
    }

    /// How long it may wait.
    #[must_use]
    pub fn patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// The details that dumps show of it.
    #[must_use]
    pub fn details(self, details: Details) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// The request is a watch, whose execution is only its beginning (HF-9): metrics tell its time from that of ordinary
    /// requests. It is [long-running](Self::long_running) too.
    #[must_use]
    pub fn watch(self) -> Self {
        Self { run_length: RunLength::Watch, ..self }
    }

    /// The request goes on for long, as a watch or an upgraded connection does. Such requests never hold more than the nominal seats
    /// of their level where seats are borrowed at once (LB-5). It counts towards the limit of its level on such requests (the annotation `evenkeel.dev/max-long-running`) as
    /// long as it has its permit, or as long as what
    /// [`Permit::take_long_running`](crate::Permit::take_long_running) gives is kept.
    #[must_use]
    pub fn long_running(self) -> Self {
        Self { run_length: self.run_length.max(RunLength::Long), ..self }
    }

    /// Notes that the request is a change which so many watches have to be told of (WE-18), for the metric `watch_count_samples`.
    #[must_use]
    pub fn interested_watches(self, watches: u64) -> Self {
        Self { watches: Some(watches), ..self }
    }

    /// Notes there when it arrives, gets its seats and gives them back.
    #[must_use]
    pub fn seat_times(self, times: &Arc<SeatTimes>) -> Self {
        Self { times: Some(Arc::clone(times)), ..self }
    }
}

// === impl Incoming ===

impl<E: Fn(&LevelInfo) -> WorkEstimate> Incoming<'_, E> {
    /// How much work it is, if it belongs to that flow schema.
    #[inline]
    pub(crate) fn work_in(&self, schema: &Schema) -> WorkEstimate {
        schema.seats.map_or_else(|| (self.estimate)(&schema.level), WorkEstimate::seats)
    }
}

impl<E> Incoming<'_, E> {
    /// How it is counted there.
    #[inline]
    pub(crate) fn mark(&self, destination: &Destination) -> Mark {
        let access = Access::of(self.attributes.request);
        Mark { series: destination.series, access, is_watch: self.run_length == RunLength::Watch, digest: self.digest }
    }

    /// Notes that the request was rejected on arrival.
    pub(crate) fn note_rejected(&self, now: Instant) {
        if let Some(times) = self.times {
            times.note_end(None, now);
        }
    }
}

// === impl Details ===

impl Details {
    /// A request of that user, method and target.
    pub fn new(user: Arc<User>, method: http::Method, uri: http::Uri) -> Self {
        Self { user, method, uri }
    }

    pub(crate) fn head(&self) -> Head<'_> {
        Head { user: &self.user, method: &self.method, uri: &self.uri }
    }
}

thread_local! {
    static SPARE: SpareBoxes<Details> = const { RefCell::new(Vec::new()) };
}

impl Reusable for Details {
    #[inline]
    fn spare() -> &'static LocalKey<SpareBoxes<Self>> {
        &SPARE
    }
}

// === impl Head ===

impl Head<'_> {
    #[inline]
    pub(crate) fn to_details(self) -> Details {
        Details { user: Arc::clone(self.user), method: self.method.clone(), uri: self.uri.clone() }
    }
}

// === impl Patience ===

impl Patience {
    /// A request that was received just now, and has this long until nobody wants its response any more.
    pub fn deadline_in(time: Duration) -> Self {
        Self { deadline_in: Some(time), ..Self::default() }
    }

    /// The same, received that long ago.
    #[must_use]
    pub fn received_ago(self, time: Duration) -> Self {
        Self { received_ago: time, ..self }
    }

    /// The same, with a limit of its own for the time in a queue. A request without a deadline waits for that long, also for
    /// longer than a minute, except in front of a [Kubernetes API](Preset::Kubernetes).
    #[must_use]
    pub fn waits_at_most(self, limit: Duration) -> Self {
        Self { wait_limit: Some(limit), ..self }
    }

    /// No request waits longer than this for a seat of a Kubernetes API, nor because of its own deadline (HF-6).
    const MAX: Duration = Duration::from_secs(60);

    /// How long the request may still wait, given what holds for requests that have neither a deadline nor a limit of their own.
    #[inline]
    pub(crate) fn limit(&self, default: Nanos, preset: Preset) -> Nanos {
        if self.deadline_in.is_none() && self.wait_limit.is_none() && self.received_ago.is_zero() {
            // Nearly all requests are like this.
            match preset {
                Preset::Plain | Preset::Llm => default,
                Preset::Kubernetes => default.min(const { nanos(Self::MAX) }),
            }
        } else {
            self.limit_of_its_own(default, preset)
        }
    }

    fn limit_of_its_own(&self, default: Nanos, preset: Preset) -> Nanos {
        let default = self.wait_limit.unwrap_or(Duration::from_nanos(default.unsigned_abs()));
        let max = match preset {
            Preset::Plain | Preset::Llm => default.max(Self::MAX),
            Preset::Kubernetes => Self::MAX,
        };
        let whole = self.deadline_in.map(|left| self.received_ago.saturating_add(left));
        let limit = whole.map_or(default, |whole| whole / 4).min(max);
        nanos(limit.saturating_sub(self.received_ago))
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::time::SECOND;

    use super::*;

    #[test]
    fn hf_7_wait_limits() {
        let seconds = Duration::from_secs;
        for (received_ago, deadline_in, default, limit) in [
            (0, Some(60), 15, 15),
            (10, Some(50), 15, 5),
            (10, None, 15, 5),
            (0, Some(480), 15, 60),
            (0, None, 120, 60),
            (20, Some(10), 15, 0),
        ] {
            let (received_ago, deadline_in) = (seconds(received_ago), deadline_in.map(seconds));
            let patience = Patience { received_ago, deadline_in, wait_limit: None };
            assert_eq!(
                patience.limit(nanos(seconds(default)), Preset::Kubernetes),
                nanos(seconds(limit)),
                "{patience:?}"
            );
        }
    }

    #[test]
    fn a_plain_service_may_let_requests_wait_for_longer_than_a_minute() {
        let seconds = Duration::from_secs;
        let limit = |patience: Patience, default| patience.limit(nanos(seconds(default)), Preset::Plain) / SECOND;
        assert_eq!(limit(Patience::default(), 300), 300);
        assert_eq!(limit(Patience::default().waits_at_most(seconds(300)), 15), 300);
        assert_eq!(limit(Patience::default().waits_at_most(seconds(5)), 15), 5);
        // A deadline counts as before, and does not shorten the wait below that of others because it is far away.
        assert_eq!(limit(Patience::deadline_in(seconds(480)), 15), 60);
        assert_eq!(limit(Patience::deadline_in(seconds(480)), 300), 120);
        assert_eq!(limit(Patience::deadline_in(seconds(4800)).waits_at_most(seconds(300)), 15), 300);
        assert_eq!(limit(Patience::deadline_in(seconds(8)).waits_at_most(seconds(300)), 15), 2);
    }

    #[test]
    fn hf_6_no_deadline_is_too_far_away() {
        let far = Patience::deadline_in(Duration::MAX);
        for preset in [Preset::Plain, Preset::Kubernetes] {
            let patience = far.received_ago(Duration::from_secs(20));
            assert_eq!(patience.limit(15 * SECOND, preset), 40 * SECOND);
            assert_eq!(far.received_ago(Duration::MAX).limit(Nanos::MAX, preset), 0);
        }
    }
}
