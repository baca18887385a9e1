//! The rules of chapter 2, written down as plainly as possible: no heap, no sums, everything computed anew.

use std::collections::{BTreeMap, VecDeque};

use evenkeel_engine::queue_set::SERVICE_TIME_GUESS;

/// A level that queues per flow.
#[derive(Debug)]
pub(crate) struct PlainLevel {
    pub(crate) seats: i64,
    level_limit: usize,
    flow_limit: usize,
    flows: BTreeMap<u64, PlainFlow>,
    virtual_time: i128,
    turn: Option<u64>,
    estimate: u64,
    arrivals: u64,
    /// The flow, seats and start of each request that holds seats, and whether its handler runs.
    running: BTreeMap<usize, Running>,
}

#[derive(Debug)]
struct PlainFlow {
    weight: u16,
    base: i128,
    estimate: u64,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    request: usize,
    seats: u32,
    arrival: u64,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    flow: u64,
    seats: u32,
    started: i64,
    executes: bool,
}

/// A request that arrives.
#[derive(Debug, Clone, Copy)]
pub(crate) struct New {
    pub(crate) request: usize,
    pub(crate) flow: u64,
    pub(crate) weight: u16,
    pub(crate) seats: u32,
}

/// What an event brings about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    Started(usize),
    Rejected(usize),
}

// === impl PlainLevel ===

impl PlainLevel {
    pub(crate) fn new(seats: i64, (queues, hand, length): (usize, usize, usize)) -> Self {
        Self {
            seats,
            level_limit: queues * length,
            flow_limit: hand * length,
            flows: BTreeMap::new(),
            virtual_time: 0,
            turn: None,
            estimate: SERVICE_TIME_GUESS.unsigned_abs(),
            arrivals: 0,
            running: BTreeMap::new(),
        }
    }

    pub(crate) fn arrive(&mut self, now: i64, new: New) -> Vec<Happened> {
        self.forget();
        let mut happened = Vec::new();
        let is_saturated = self.seats_in_use() >= self.seats;
        let is_crowded = is_saturated || self.waiting() > 0;
        // PF-7: a flow's limit, and then the level's.
        if is_crowded && self.flows.get(&new.flow).map_or(0, |flow| flow.waiting.len()) >= self.flow_limit {
            return vec![Happened::Rejected(new.request)];
        }
        if is_crowded && self.waiting() >= self.level_limit {
            let own = self.flows.get(&new.flow).map_or(0, PlainFlow::seats_waiting) + u64::from(new.seats);
            let heaviest = self.flows.values().filter(|flow| !flow.waiting.is_empty()).max_by_key(|flow| {
                (load(flow.seats_waiting(), flow.weight), flow.waiting.back().map(|waiting| waiting.arrival))
            });
            match heaviest
                .filter(|flow| load(flow.seats_waiting(), flow.weight) > load(own, new.weight_of(&self.flows)))
            {
                Some(heaviest) => {
                    let victim = heaviest.waiting.back().unwrap().request;
                    self.remove(victim);
                    happened.push(Happened::Rejected(victim));
                }
                None => return vec![Happened::Rejected(new.request)],
            }
        }
        // PF-3: a new flow is expected to need what others need.
        let fresh = PlainFlow { weight: 1, base: self.virtual_time, estimate: self.estimate, waiting: VecDeque::new() };
        self.flows.entry(new.flow).or_insert(fresh).weight = new.weight;
        self.lift(now, new.flow);
        if self.waiting() == 0 && !is_saturated && self.accommodates(new.seats) {
            self.virtual_time = self.virtual_time.max(self.key(now, new.flow));
            self.start(now, new.flow, new.request, new.seats, &mut happened);
            return happened;
        }
        self.arrivals += 1;
        let waiting = Waiting { request: new.request, seats: new.seats, arrival: self.arrivals };
        self.flows.get_mut(&new.flow).unwrap().waiting.push_back(waiting);
        self.dispatch(now, &mut happened);
        happened
    }

    /// The handler of a request has returned.
    pub(crate) fn finish(&mut self, now: i64, request: usize, lingers: bool) -> Vec<Happened> {
        self.forget();
        self.running.get_mut(&request).unwrap().executes = false;
        let mut happened = Vec::new();
        if !lingers {
            self.free(now, request);
        }
        self.dispatch(now, &mut happened);
        happened
    }

    /// A request has lingered.
    pub(crate) fn release(&mut self, now: i64, request: usize) -> Vec<Happened> {
        self.forget();
        self.free(now, request);
        let mut happened = Vec::new();
        self.dispatch(now, &mut happened);
        happened
    }

    /// A waiting request gives up.
    pub(crate) fn cancel(&mut self, now: i64, request: usize) -> Vec<Happened> {
        self.forget();
        let mut happened = Vec::new();
        if self.remove(request) {
            self.dispatch(now, &mut happened);
        }
        happened
    }

    pub(crate) fn set_seats(&mut self, now: i64, seats: i64) -> Vec<Happened> {
        self.forget();
        self.seats = seats;
        let mut happened = Vec::new();
        self.dispatch(now, &mut happened);
        happened
    }

    pub(crate) fn waiting(&self) -> usize {
        self.flows.values().map(|flow| flow.waiting.len()).sum()
    }

    pub(crate) fn seats_in_use(&self) -> i64 {
        self.running.values().map(|running| i64::from(running.seats)).sum()
    }

    /// Whether a seat is free although somebody waits who could use it, other than for PF-8.
    pub(crate) fn wastes_seats(&self) -> bool {
        self.waiting() > 0 && self.seats_in_use() < self.seats && self.turn.is_none()
    }

    /// PF-6.
    fn forget(&mut self) {
        let (nobody_waits, virtual_time) = (self.waiting() == 0, self.virtual_time);
        let active: Vec<u64> = self.running.values().map(|running| running.flow).collect();
        self.flows.retain(|hash, flow| {
            let is_idle = flow.waiting.is_empty() && !active.contains(hash);
            !(is_idle && (nobody_waits || flow.base <= virtual_time))
        });
        loop {
            let idle = self.flows.iter().filter(|(hash, flow)| flow.waiting.is_empty() && !active.contains(hash));
            let idle: Vec<_> = idle.map(|(hash, flow)| (flow.base, *hash)).collect();
            match idle.iter().min() {
                Some((_, least)) if idle.len() > (self.flows.len() / 2).max(256) => self.flows.remove(least),
                _ => return,
            };
        }
    }

    fn accommodates(&self, seats: u32) -> bool {
        match i64::from(seats) {
            seats if seats > self.seats => !self.running.values().any(|running| running.executes),
            seats => self.seats_in_use() + seats <= self.seats,
        }
    }

    /// PF-2.
    fn key(&self, now: i64, hash: u64) -> i128 {
        let running = || self.running.values().filter(|running| running.flow == hash);
        let by_time = running().map(|running| (now - running.started).unsigned_abs() * u64::from(running.seats)).sum();
        let at_dispatch = running().count() as u64 * self.flows[&hash].estimate;
        self.flows[&hash].base + key_of(at_dispatch.max(by_time), self.flows[&hash].weight)
    }

    /// The waiting flow with the least key. PF-4: the virtual time follows it.
    fn least(&mut self, now: i64) -> Option<u64> {
        let waiting = self.flows.iter().filter_map(|(hash, flow)| Some((*hash, flow.waiting.front()?.arrival)));
        let (key, _, hash) = waiting.map(|(hash, arrival)| (self.key(now, hash), arrival, hash)).min()?;
        self.virtual_time = self.virtual_time.max(key);
        Some(hash)
    }

    /// PF-5.
    fn lift(&mut self, now: i64, hash: u64) {
        if self.flows[&hash].waiting.is_empty() {
            self.least(now);
            let behind = self.virtual_time - self.key(now, hash);
            self.flows.get_mut(&hash).unwrap().base += behind.max(0);
        }
    }

    fn dispatch(&mut self, now: i64, happened: &mut Vec<Happened>) {
        while self.seats_in_use() < self.seats {
            let Some(hash) = self.turn.or_else(|| self.least(now)) else { return };
            let head = *self.flows[&hash].waiting.front().unwrap();
            if !self.accommodates(head.seats) {
                // PF-8.
                self.turn = Some(hash);
                return;
            }
            self.turn = None;
            self.flows.get_mut(&hash).unwrap().waiting.pop_front();
            self.start(now, hash, head.request, head.seats, happened);
        }
    }

    fn start(&mut self, now: i64, flow: u64, request: usize, seats: u32, happened: &mut Vec<Happened>) {
        self.running.insert(request, Running { flow, seats, started: now, executes: true });
        happened.push(Happened::Started(request));
    }

    fn free(&mut self, now: i64, request: usize) {
        let Running { flow, seats, started, .. } = self.running.remove(&request).unwrap();
        let used = (now - started).unsigned_abs() * u64::from(seats);
        let flow = self.flows.get_mut(&flow).unwrap();
        flow.base += key_of(used, flow.weight);
        flow.estimate = learnt(flow.estimate, used);
        self.estimate = learnt(self.estimate, used);
    }

    /// Takes a request out of its queue, and tells whether that ends the turn of its flow.
    fn remove(&mut self, request: usize) -> bool {
        let found = self.flows.iter().find_map(|(hash, flow)| {
            flow.waiting.iter().position(|waiting| waiting.request == request).map(|position| (*hash, position))
        });
        let (hash, position) = found.expect("a request that waits");
        self.flows.get_mut(&hash).unwrap().waiting.remove(position);
        let ends_turn = position == 0 && self.turn == Some(hash);
        if ends_turn {
            self.turn = None;
        }
        ends_turn
    }
}

// === impl PlainFlow ===

impl PlainFlow {
    fn seats_waiting(&self) -> u64 {
        self.waiting.iter().map(|waiting| u64::from(waiting.seats)).sum()
    }
}

// === impl New ===

impl New {
    /// What the flow has waiting counts by the weight that it had; a flow of which nothing is known has the request's.
    fn weight_of(&self, flows: &BTreeMap<u64, PlainFlow>) -> u16 {
        flows.get(&self.flow).map_or(self.weight, |flow| flow.weight)
    }
}

/// Seat-nanoseconds by weight, in units of 1/16, rounded.
fn key_of(amount: u64, weight: u16) -> i128 {
    let inverse = (1_u128 << 36) / u128::from(weight);
    i128::try_from((u128::from(amount) * inverse + (1 << 31)) >> 32).unwrap()
}

fn load(seats: u64, weight: u16) -> u64 {
    (seats << 32) / u64::from(weight)
}

/// PF-3.
fn learnt(estimate: u64, used: u64) -> u64 {
    (estimate - estimate / 8 + used / 8).min(4 * estimate).max(1000)
}
