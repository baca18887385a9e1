//! `Throttled`: a request that is over the rate of its flow, and waits for its time without a seat (RL-2).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use evenkeel_api::Preset;
use evenkeel_api::annotations::CostUnit;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::rate::RateTicket;
use evenkeel_engine::time::Instant;
use evenkeel_engine::{RequestInfo, User, WorkEstimate};
use tokio::time::Sleep;

use super::request_account::{RequestAccount, Taken};
use super::schema_accounts::SchemaAccounts;
use crate::control::class::Class;
use crate::control::counts::Mark;
use crate::control::digests::DigestId;
use crate::control::flow_control::FlowControl;
use crate::control::request::{Details, Patience, RunLength};
use crate::control::reused_box::ReusedBox;
use crate::control::seat_times::SeatTimes;
use crate::control::snapshot::Destination;

/// A request that waits for its time. Dropping it gives back what it took of the rate.
#[derive(Debug)]
pub(crate) struct Throttled {
    pub(crate) flow_control: FlowControl,
    pub(crate) destination: Arc<Destination>,
    pub(crate) accounts: Arc<SchemaAccounts>,
    pub(crate) taken: Taken,
    pub(crate) arrived: Instant,
    /// When it conforms.
    pub(crate) until: Instant,
    /// Set if others share the rate: whether it conforms is not known before then. It waits until `latest` at most.
    shared: Option<RateTicket>,
    pub(crate) latest: Instant,
    pub(crate) mark: Mark,
    pub(crate) has_expired: bool,
    timer: Option<Pin<Box<Sleep>>>,
    /// `None` once the request has gone on.
    request: Option<ThrottledRequest>,
}

/// A request that waits for its rate, with its own copies of all texts.
#[derive(Debug)]
pub(crate) struct ThrottledRequest {
    pub(crate) user: Arc<User>,
    pub(crate) info: RequestInfo<'static>,
    /// The flow of the request, as the request was classified.
    pub(crate) distinguisher: Box<str>,
    pub(crate) flow_hash: u64,
    pub(crate) index: usize,
    pub(crate) details: Option<Details>,
    pub(crate) work: WorkEstimate,
    pub(crate) patience: Patience,
    pub(crate) digest: DigestId,
    pub(crate) run_length: RunLength,
    pub(crate) watches: Option<u64>,
    pub(crate) times: Option<Arc<SeatTimes>>,
    pub(crate) account: Option<ReusedBox<RequestAccount>>,
    /// The unit of cost that its route names.
    pub(crate) unit: Option<CostUnit>,
    pub(crate) route: Option<u64>,
}

/// When and where a request waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wait {
    pub(crate) taken: Taken,
    pub(crate) arrived: Instant,
    pub(crate) until: Instant,
    pub(crate) ticket: Option<RateTicket>,
    pub(crate) latest: Instant,
    pub(crate) mark: Mark,
}

// === impl Throttled ===

impl Throttled {
    pub(crate) fn new(
        flow_control: &FlowControl,
        destination: &Arc<Destination>,
        accounts: &Arc<SchemaAccounts>,
        wait: Wait,
        request: ThrottledRequest,
    ) -> Self {
        let Wait { taken, arrived, until, ticket, latest, mark } = wait;
        if let Some(rates) = accounts.rates() {
            let mut counts = rates.counts();
            counts.waiting += 1;
            counts.delayed += 1;
        }
        Self {
            flow_control: flow_control.clone(),
            destination: Arc::clone(destination),
            accounts: Arc::clone(accounts),
            taken,
            arrived,
            until,
            shared: ticket,
            latest,
            mark,
            has_expired: false,
            timer: None,
            request: Some(request),
        }
    }

    /// Whether its time has come. If not, the waker is called when it comes.
    pub(crate) fn poll_due(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let upkeep = &self.destination.upkeep;
        loop {
            let now = upkeep.clock.now();
            if now >= self.until {
                let again = self.shared.and_then(|ticket| self.accounts.look_again(self.taken.flow, &ticket, now));
                // The part of the rate that this instance has may have fallen, but nobody waits for longer than the limit.
                match again.filter(|_| now < self.latest) {
                    Some(until) => self.until = until.min(self.latest),
                    None => return Poll::Ready(()),
                }
                self.timer = None;
                continue;
            }
            let timer = match &mut self.timer {
                Some(timer) => timer,
                None => match upkeep.clock.timer(self.until) {
                    Some(at) => self.timer.insert(Box::pin(tokio::time::sleep_until(at))),
                    None => {
                        upkeep.wake_at(self.until, context.waker());
                        return Poll::Pending;
                    }
                },
            };
            if timer.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            // The clock is behind the timer: another one is made.
            self.timer = None;
        }
    }

    /// When it conforms, if it has waited for as long as it may and does not yet: the part of the rate that this instance has has fallen.
    pub(crate) fn conforms_late(&self, now: Instant) -> Option<Instant> {
        let ticket = self.shared.filter(|_| now >= self.latest)?;
        self.accounts.look_again(self.taken.flow, &ticket, now)
    }

    /// The request, which goes on now if it `conforms`. Otherwise it gives back what it took of the rate.
    pub(crate) fn take_request(&mut self, conforms: bool) -> Option<ThrottledRequest> {
        let request = self.request.take()?;
        self.end_wait(conforms);
        Some(request)
    }

    /// Where it belongs and the seats that it will take.
    pub(crate) fn class_and_seats(&self) -> (Class, u32) {
        let seats = self.request.as_ref().map_or(0, |request| request.work.max_seats());
        (Class(Arc::clone(&self.destination)), seats)
    }

    /// How it is counted if it is dropped now.
    pub(crate) fn reason_if_dropped(&self) -> Rejection {
        match self.destination.preset() {
            Preset::Plain | Preset::Llm if !self.has_expired => Rejection::Cancelled,
            Preset::Plain | Preset::Llm | Preset::Kubernetes => Rejection::TimeOut,
        }
    }

    fn end_wait(&self, passes: bool) {
        let now = self.destination.upkeep.clock.now();
        let waited = now - self.arrived;
        match &self.shared {
            Some(ticket) if passes => self.accounts.end_wait(self.taken.flow, ticket),
            None if passes => {}
            ticket => self.accounts.leave_wait(self.taken, ticket.as_ref(), now),
        }
        if let Some(rates) = self.accounts.rates() {
            let mut counts = rates.counts();
            counts.waiting = counts.waiting.saturating_sub(1);
            counts.delay += Duration::from_nanos(waited.max(0).unsigned_abs());
        }
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else { return };
        self.end_wait(false);
        self.note_left(&request);
    }
}
