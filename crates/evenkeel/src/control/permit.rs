//! `Permit`: a request that has been let in. It ends when the permit is dropped.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::control::accounts::{RequestAccount, SchemaAccounts};
use crate::control::admission::Admission;
use crate::control::class::Class;
use crate::control::clock::nanos;
use crate::control::cost_source::Counted;
use crate::control::events::RunEnd;
use crate::control::long_running::LongRunning;
use crate::control::reused_box::ReusedBox;
use crate::control::seat_times::RequestCost;
use crate::control::uid_headers::UidHeaders;

/// The right to run, and the seats that go with it.
///
/// Dropping it finishes the request: its seats go to the next request, at once or after this one has lingered. A handler that
/// panics drops it too.
#[must_use = "the request is finished when the permit is dropped"]
pub struct Permit(ReusedBox<Admission>);

/// A permit that several parties hold. The request ends when the last of them has dropped it.
///
/// Work that goes on after the response keeps its seats this way: a handler behind a layer with
/// [`share_permits`](crate::FlowLayer::share_permits) finds one among the extensions of its request and gives a clone to the
/// task that does the work.
#[must_use = "the seats are free when the last clone is dropped"]
#[derive(Debug, Clone)]
pub struct SharedPermit(Arc<Permit>);

/// The permit of a request that goes through the layer.
#[derive(Debug)]
pub(crate) enum HeldPermit {
    Own(Permit),
    Shared(SharedPermit),
}

// === impl Permit ===

impl Permit {
    pub(crate) fn new(admission: ReusedBox<Admission>) -> Self {
        Self(admission)
    }

    /// The headers that every response to the request gets.
    pub(crate) fn uid_headers(&self) -> Option<&UidHeaders> {
        self.0.destination.uid_headers.as_ref()
    }

    /// The flow schema and the priority level of the request, for longer than the permit.
    pub fn class(&self) -> Class {
        Class(Arc::clone(&self.0.destination))
    }

    /// The seats that the request takes: as it was estimated, unless they were [changed](Self::set_seats) since. None for one that
    /// [takes no seat](crate::WorkEstimate::NO_SEAT).
    pub fn seats(&self) -> u32 {
        self.0.seats.load(Ordering::Relaxed)
    }

    /// Changes the seats of a request that takes more of the service than was estimated, or less: it holds so many from now on,
    /// at least one. Additional seats are taken at once; the level may be above its limit then, and starts no request until
    /// enough others have ended. Seats that are given back serve others at once. A request that takes no seat stays as it is.
    ///
    /// ```
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let flow = FlowControl::builder().server_concurrency(20).build();
    /// let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/report"));
    /// let attributes = Attributes { user: &user, request: &request };
    /// let permit = flow.admit(attributes, WorkEstimate::ONE_SEAT).await.unwrap();
    /// // The report turns out to have a million rows.
    /// permit.set_seats(8);
    /// assert_eq!(permit.seats(), 8);
    /// # }
    /// ```
    pub fn set_seats(&self, seats: u32) {
        self.0.set_seats(seats);
    }

    /// Charges the flow of the request this much seat-time in addition, for a request that costs more than the time for which it
    /// holds its seats: the next turn of the flow comes later. No seats change.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// # let flow = FlowControl::builder().build();
    /// # let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::default());
    /// # let permit = flow.admit(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT).await.unwrap();
    /// // A query that the database goes on working at when the response is there.
    /// permit.charge(Duration::from_millis(300));
    /// # }
    /// ```
    pub fn charge(&self, seat_time: Duration) {
        self.0.charge(nanos(seat_time));
    }

    /// The request costs less than it was [charged](Self::charge): this much seat-time is taken back.
    pub fn refund(&self, seat_time: Duration) {
        self.0.charge(-nanos(seat_time));
    }

    /// This much of the request's cost has arisen, in the unit that the annotation `evenkeel.dev/cost` of its flow schema says. Cost
    /// beyond what was expected is charged to its flow at once, and if its seats are learnt, they follow. Does nothing if the costs of
    /// the flow schema do not count.
    ///
    /// ```
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let flow = FlowControl::builder().server_concurrency(20).build();
    /// let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("post", "/v1/generate"));
    /// let permit = flow.admit(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT).await.unwrap();
    /// for _token in 0..100 {
    ///     permit.add_cost(1.0);
    /// }
    /// # }
    /// ```
    #[inline]
    pub fn add_cost(&self, more: f64) {
        self.0.note_cost(|account| account.arise(more));
    }

    /// The whole request costs this much, whatever has arisen: see [`add_cost`](Self::add_cost). Its seats follow in either direction.
    pub fn set_cost(&self, cost: f64) {
        self.0.note_cost(|account| account.report(cost));
    }

    /// The request will have cost this much if it comes to its end, by all that is known: its seats follow, and what arises counts as
    /// before.
    pub fn announce_cost(&self, cost: f64) {
        self.0.note_cost(|account| account.announce(cost));
    }

    /// Notes a cost that a meter has found out.
    pub(crate) fn note_counted(&self, counted: Counted) {
        match counted {
            Counted::Nothing => {}
            Counted::More(more) => self.add_cost(more),
            Counted::InAll(cost) => self.0.note_cost(|account| account.arisen_in_all(cost)),
            Counted::Announced(cost) => self.announce_cost(cost),
            Counted::Exactly(cost) => self.set_cost(cost),
        }
    }

    /// What the request was expected to cost, and what has arisen so far; `None` if the costs of its flow schema do not count.
    pub fn cost(&self) -> Option<RequestCost> {
        let account = self.0.account.as_ref()?.state();
        Some(RequestCost { expected: account.expected(), actual: account.cost() })
    }

    /// The account of the request's cost, if costs count.
    #[inline]
    pub(crate) fn account(&self) -> Option<&RequestAccount> {
        self.0.account.as_deref()
    }

    /// The accounts of its flow schema, if the schema says something of costs or rates.
    #[inline]
    pub(crate) fn accounts(&self) -> Option<&SchemaAccounts> {
        self.0.destination.accounts.as_deref()
    }

    /// The request has failed: its service did not answer as it should, or in time. [Listeners](crate::events::Listener) are told so when it
    /// ends: how long it took says little about how much the service can do.
    pub fn mark_failed(&self) {
        self.0.note_end(RunEnd::Failed);
    }

    /// The client of the request has left before there was a response. That says nothing about the service, but the seats were used.
    pub(crate) fn mark_left(&self) {
        self.0.note_end(RunEnd::Left);
    }

    /// Resolves when the request is to end although its service has not done all of it: its level is
    /// [revocable](evenkeel_api::annotations::REVOCABLE), and another level needs its own seats (LM-7). End it then, in a way that its
    /// client understands, and drop the permit. Never resolves for requests of other levels.
    ///
    /// The layer does so itself: see [`FlowLayer::leave_revoked`](crate::FlowLayer::leave_revoked).
    ///
    /// ```
    /// use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let flow = FlowControl::builder().server_concurrency(20).build();
    /// let (user, request) = (User::new("batch", ["system:authenticated"]), RequestInfo::for_path("post", "/v1/generate"));
    /// let permit = flow.admit(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT).await.unwrap();
    /// let work = async { "done" };
    /// tokio::select! {
    ///     result = work => assert_eq!(result, "done"),
    ///     () = permit.revoked() => println!("try again later"),
    /// }
    /// drop(permit);
    /// # }
    /// ```
    pub async fn revoked(&self) {
        match &self.0.ticket {
            Some(ticket) => ticket.revoked().await,
            None => std::future::pending().await,
        }
        self.0.note_end(RunEnd::Revoked);
    }

    /// The same for code that is polled. Of several tasks that ask, the last one is woken.
    #[inline]
    pub fn poll_revoked(&self, context: &Context<'_>) -> Poll<()> {
        let Some(ticket) = &self.0.ticket else { return Poll::Pending };
        ticket.poll_revoked(context).map(|()| self.0.note_end(RunEnd::Revoked))
    }

    /// Whether the request [may be told to end](Self::revoked): its level is revocable.
    #[inline]
    pub fn is_revocable(&self) -> bool {
        self.0.ticket.is_some()
    }

    /// The queue of the level that the request came through, counted from 0; `None` if the level has no queues.
    pub fn queue(&self) -> Option<u32> {
        self.0.queue
    }

    /// The place that the request had among those that waited in its level when it arrived, from 1; `None` if it has not waited. Where clients
    /// take turns, those that arrived later may have started before.
    pub fn position(&self) -> Option<u32> {
        Some(self.0.position).filter(|position| *position > 0)
    }

    /// How long the request waited for its seats, by the clock of the flow control. A task that was busy when its request got
    /// them holds them while it does not run yet; that time is not part of the wait.
    pub fn waited(&self) -> Duration {
        self.0.waited()
    }

    /// Takes over the request's place among the long-running requests of its level, to keep it for longer than the permit:
    /// until the connection of an upgrade has ended, say. `None` if the request is
    /// [not long-running](crate::request::FlowRequest::long_running), or if somebody has taken it already.
    ///
    /// The layer does so for responses that give their seats back early, and keeps it until their bodies have ended. A
    /// handler that [shares the permit](crate::FlowLayer::share_permits) and switches protocols can keep it itself:
    ///
    /// ```
    /// use axum::Extension;
    /// use axum::extract::Request;
    /// use axum::http::StatusCode;
    /// use evenkeel::request::SharedPermit;
    ///
    /// async fn socket(Extension(permit): Extension<SharedPermit>, mut request: Request) -> StatusCode {
    ///     let place = permit.take_long_running();
    ///     tokio::spawn(async move {
    ///         let connection = hyper::upgrade::on(&mut request).await;
    ///         // Serve the connection, and then let others have its place.
    ///         drop((connection, place));
    ///     });
    ///     StatusCode::SWITCHING_PROTOCOLS
    /// }
    /// # let app: axum::Router = axum::Router::new().route("/socket", axum::routing::get(socket));
    /// ```
    pub fn take_long_running(&self) -> Option<LongRunning> {
        self.0.counting.take(&self.0.destination.long_running)
    }

    /// The same for a request that turns out to be long-running.
    pub(crate) fn begin_long_running(&self) -> Option<LongRunning> {
        self.0.counting.take_or_begin(&self.0.destination.long_running)
    }

    /// The name of the flow schema that the request belongs to.
    pub fn flow_schema(&self) -> &str {
        &self.0.destination.schema().name
    }

    /// The identity of that flow schema; empty for a built-in one.
    pub fn flow_schema_uid(&self) -> &str {
        &self.0.destination.schema().uid
    }

    /// The name of the priority level that the request is in.
    pub fn priority_level(&self) -> &str {
        &self.0.destination.schema().level.name
    }

    /// The identity of that priority level; empty for a built-in one.
    pub fn priority_level_uid(&self) -> &str {
        &self.0.destination.schema().level.uid
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (schema, level) = (self.flow_schema(), self.priority_level());
        f.debug_struct("Permit").field("flow_schema", &schema).field("priority_level", &level).finish()
    }
}

// === impl SharedPermit ===

impl From<Permit> for SharedPermit {
    fn from(permit: Permit) -> Self {
        Self(Arc::new(permit))
    }
}

impl Deref for SharedPermit {
    type Target = Permit;

    fn deref(&self) -> &Permit {
        &self.0
    }
}

// === impl HeldPermit ===

impl HeldPermit {
    /// The permit in a form that can be kept for longer than the request.
    pub(crate) fn into_shared(self) -> SharedPermit {
        match self {
            Self::Own(permit) => permit.into(),
            Self::Shared(permit) => permit,
        }
    }
}

impl Deref for HeldPermit {
    type Target = Permit;

    fn deref(&self) -> &Permit {
        match self {
            Self::Own(permit) => permit,
            Self::Shared(permit) => permit,
        }
    }
}
