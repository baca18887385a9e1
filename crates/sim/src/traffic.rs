//! The clients of a workload: when they send requests, and what they do with responses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use evenkeel_engine::time::{Nanos, SECOND};
use evenkeel_engine::{Attributes, WorkEstimate};

use crate::accounts::AccountKey;
use crate::fairness::{Indexes, jain};
use crate::new_request::{Class, NewRequest};
use crate::outcome::{End, Outcome, Outcomes};
use crate::simulator::Simulator;
use crate::stream::Caller;
use crate::tally::{FlowTally, Tally};
use crate::workload::{Arrivals, Draws, FlowGroup, OnRejection, PATIENCE_DEFAULT, RESPONSE_TIME, Workload};

/// All clients of a workload.
pub(crate) struct Traffic<'a> {
    workload: &'a Workload,
    flows: Vec<Flow<'a>>,
    arrivals: BinaryHeap<Reverse<(Nanos, u64, Arrival)>>,
    sequence: u64,
    /// Requests that arrived before this time are not counted.
    counted_from: Nanos,
    pub(crate) per_second: Indexes,
}

/// One flow of the workload.
pub(crate) struct Flow<'a> {
    /// The row that it belongs to, and its number in it.
    pub(crate) row: usize,
    pub(crate) number: u32,
    group: &'a FlowGroup,
    caller: Caller,
    /// Where its requests belong at each server.
    classes: Vec<Option<(Class, WorkEstimate, AccountKey)>>,
    /// The place of the server that got its latest request, among those that it uses.
    turn: usize,
    draws: Draws,
    pub(crate) tally: FlowTally,
}

/// The token of each request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token {
    flow: u32,
    attempt: u32,
    waits: bool,
    service: Nanos,
    cost: Nanos,
}

/// A request that will arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    flow: u32,
    /// How often it has been rejected, and its service time if it has been.
    attempt: u32,
    service: Nanos,
    /// What it costs, likewise.
    cost: Nanos,
    /// How many more arrive at the same time.
    more: u32,
}

// === impl Traffic ===

impl<'a> Traffic<'a> {
    pub(crate) fn new(workload: &'a Workload, seed: u64, servers: usize) -> Self {
        let mut flows = Vec::new();
        for (row, group) in workload.flows.iter().enumerate() {
            for number in 0..group.count {
                flows.push(Flow {
                    row,
                    number,
                    group,
                    caller: group.caller_of(number),
                    classes: vec![None; servers],
                    turn: number as usize,
                    draws: Draws::new(seed, group, number),
                    tally: FlowTally::default(),
                });
            }
        }
        let (arrivals, sequence, per_second) = (BinaryHeap::new(), 0, Indexes::default());
        let mut traffic = Self { workload, flows, arrivals, sequence, counted_from: workload.warmup, per_second };
        (0..u32::try_from(traffic.flows.len()).unwrap_or(u32::MAX)).for_each(|flow| traffic.begin(flow));
        traffic
    }

    pub(crate) fn flows(&self) -> &[Flow<'a>] {
        &self.flows
    }

    /// When the next request arrives.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Nanos> {
        self.arrivals.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next request arrives at one of the servers. Returns at which.
    #[inline]
    pub(crate) fn arrive(&mut self, servers: &mut [Simulator<Token>]) -> Option<usize> {
        let Reverse((at, _, arrival)) = self.arrivals.pop()?;
        let Arrival { flow: index, attempt, service, cost, more } = arrival;
        let flow = &mut self.flows[index as usize];
        if attempt == 0 {
            let next = if more > 0 { Some(at) } else { flow.draws.next_arrival(flow.group, at) };
            if let Some(next) = next {
                self.schedule(next, Arrival { more: more.saturating_sub(1), ..arrival });
            }
        }
        let flow = &mut self.flows[index as usize];
        let (service, cost) =
            if attempt == 0 { (flow.draws.service(flow.group), flow.draws.cost(flow.group)) } else { (service, cost) };
        if at >= self.counted_from {
            flow.tally.counted.requests += 1;
            flow.tally.counted.retries += u64::from(attempt > 0);
        }
        let server = flow.next_server(servers.len());
        let simulator = servers.get_mut(server)?;
        let (class, work, key) = flow.classify(server, simulator);
        let token = Token { flow: index, attempt, waits: false, service, cost };
        let patience = flow.group.patience.unwrap_or(PATIENCE_DEFAULT);
        let request = NewRequest::new(token, service, work).patience(patience).delay(flow.group.delay);
        #[expect(clippy::cast_precision_loss, reason = "a cost")]
        let request = request.cost(flow.group.cost.is_some().then_some(cost as f64), key);
        simulator.arrive(at, class, request, self);
        Some(server)
    }

    /// A second has passed.
    pub(crate) fn end_second(&mut self, now: Nanos) {
        let mut shares: Vec<(u32, f64)> = Vec::new();
        for flow in &mut self.flows {
            let Some(used) = flow.tally.end_second(now) else { continue };
            if let Some(class) = flow.class() {
                shares.push((class.level.0, share(used, SECOND, class)));
            }
        }
        shares.sort_by_key(|(level, _)| *level);
        for level in shares.chunk_by(|(one, _), (other, _)| one == other) {
            if let Some(index) = jain(level.iter().map(|(_, share)| *share)) {
                self.per_second.add(index);
            }
        }
    }

    /// Counting begins now.
    pub(crate) fn reset_counts(&mut self, now: Nanos) {
        self.flows.iter_mut().for_each(|flow| flow.tally.reset(now));
        self.per_second = Indexes::default();
    }

    /// Takes the time up to now into account.
    pub(crate) fn close(&mut self, now: Nanos) {
        self.flows.iter_mut().for_each(|flow| flow.tally.advance(now));
    }

    /// How evenly the flows of a level were served while they were short of seats: the lowest index of all levels.
    pub(crate) fn overall(&self) -> Option<f64> {
        let mut shares: Vec<(u32, f64)> = Vec::new();
        for flow in &self.flows {
            let backlogged = flow.tally.backlogged;
            if let Some(class) = flow.class().filter(|_| backlogged.seconds > 0) {
                let span = SECOND.saturating_mul(Nanos::try_from(backlogged.seconds).unwrap_or(Nanos::MAX));
                shares.push((class.level.0, share(backlogged.seat_time, span, class)));
            }
        }
        shares.sort_by_key(|(level, _)| *level);
        let levels = shares.chunk_by(|(one, _), (other, _)| one == other);
        levels.filter_map(|level| jain(level.iter().map(|(_, share)| *share))).reduce(f64::min)
    }

    /// Schedules the first requests of a flow.
    fn begin(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        if let Some((at, more)) = flow.draws.first_arrival(flow.group) {
            self.schedule(at, Arrival { flow: index, attempt: 0, service: 0, cost: 0, more });
        }
    }

    #[inline]
    fn schedule(&mut self, at: Nanos, arrival: Arrival) {
        if at < self.workload.span {
            self.sequence += 1;
            self.arrivals.push(Reverse((at, self.sequence, arrival)));
        }
    }

    /// Schedules the next request of a client that has its response, or has given up.
    fn go_on(&mut self, at: Nanos, index: u32) {
        let group = self.flows[index as usize].group;
        if let Arrivals::Closed { think, .. } = group.arrivals
            && at + think < group.to
        {
            self.schedule(at + think, Arrival { flow: index, attempt: 0, service: 0, cost: 0, more: 0 });
        }
    }

    /// A request was rejected.
    fn rejected(&mut self, now: Nanos, token: Token, retry_after: Nanos) {
        let flow = &mut self.flows[token.flow as usize];
        let pause = match flow.group.on_rejection {
            OnRejection::HonourRetryAfter => retry_after,
            OnRejection::Ignore => 0,
            OnRejection::Backoff { base, max } => {
                let longest = base.saturating_mul(1 << token.attempt.min(30)).min(max);
                flow.draws.pause(longest / 2, longest)
            }
            OnRejection::GiveUp => return self.go_on(now + RESPONSE_TIME, token.flow),
        };
        let at = now + pause.max(RESPONSE_TIME);
        if at < flow.group.to {
            let attempt = token.attempt.saturating_add(1);
            self.schedule(at, Arrival { flow: token.flow, attempt, service: token.service, cost: token.cost, more: 0 });
        }
    }
}

impl Outcomes<Token> for Traffic<'_> {
    fn waits(&mut self, _now: Nanos, token: &mut Token) {
        token.waits = true;
        self.flows[token.flow as usize].tally.waits();
    }

    fn started(&mut self, now: Nanos, token: &mut Token, seats: u32) {
        let tally = &mut self.flows[token.flow as usize].tally;
        if std::mem::take(&mut token.waits) {
            tally.waits_no_longer();
        }
        tally.takes(now, i64::from(seats));
    }

    fn ended(&mut self, outcome: Outcome<Token>) {
        let Outcome { token, ended: now, .. } = outcome;
        let tally = &mut self.flows[token.flow as usize].tally;
        if token.waits {
            tally.waits_no_longer();
        }
        if outcome.arrived >= self.counted_from {
            tally.counted.count(&outcome);
            if let End::Completed { .. } = outcome.end {
                tally.counted.cost += i128::from(token.cost);
            }
        }
        match outcome.end {
            End::Completed { seats, lingers, .. } => {
                tally.takes(now, -i64::from(seats));
                tally.counted.seat_time += i128::from(seats) * i128::from(lingers);
                self.go_on(now, token.flow);
            }
            End::Rejected { retry_after, .. } => self.rejected(now, token, retry_after),
            End::TimedOut { .. } => self.go_on(now + RESPONSE_TIME, token.flow),
        }
    }
}

// === impl Flow ===

impl Flow<'_> {
    /// Where its requests belong, and how many seats they take. Both are kept until the configuration changes.
    #[inline]
    fn classify(&mut self, server: usize, simulator: &Simulator<Token>) -> (Class, WorkEstimate, AccountKey) {
        match self.classes[server] {
            Some(kept) if simulator.is_current(kept.0) => kept,
            _ => {
                let Caller { user, request, query } = &self.caller;
                let class = simulator.classify(Attributes { user, request });
                let work = match self.group.seats {
                    Some(seats) => WorkEstimate::seats(seats),
                    None => simulator.estimate(request, query, class),
                };
                let key = simulator.account_key(Attributes { user, request }, class);
                *self.classes[server].insert((class, work, key))
            }
        }
    }

    /// Where its requests went.
    pub(crate) fn class(&self) -> Option<Class> {
        self.classes.iter().flatten().map(|(class, ..)| *class).next()
    }

    /// The server of its next request: they take turns.
    #[inline]
    fn next_server(&mut self, servers: usize) -> usize {
        if servers == 1 {
            return 0;
        }
        self.turn = self.turn.wrapping_add(1);
        match &self.group.instances[..] {
            [] => self.turn % servers,
            own => own[self.turn % own.len()] as usize,
        }
    }

    pub(crate) fn counted(&self) -> &Tally {
        &self.tally.counted
    }
}

/// The seats that a flow used on average, for each unit of its weight.
#[expect(clippy::cast_precision_loss, reason = "an average")]
fn share(seat_time: i128, span: Nanos, class: Class) -> f64 {
    seat_time as f64 / span as f64 / f64::from(class.flow_weight)
}
