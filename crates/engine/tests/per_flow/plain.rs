//! The rules of chapter 2, written down as plainly as possible: no heap, no sums, everything computed anew.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use evenkeel_api::annotations::{NewcomerSeats, SeatShare};
use evenkeel_engine::queue_set::{FlowLimits, SERVICE_TIME_GUESS};

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
    flow_limits: FlowLimits,
    /// How long slow requests hold their seats (PF-10).
    slow_hold: Option<u64>,
}

/// What is known of how long the requests of a flow hold their seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Unknown,
    Quick,
    Slow,
}

/// Which seats a flow may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Open,
    Held,
    Full,
}

#[derive(Debug)]
struct PlainFlow {
    weight: u16,
    base: i128,
    estimate: u64,
    pace: Pace,
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
    /// Since when it has its present seats.
    resized: i64,
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
    pub(crate) fn new(seats: i64, (queues, hand, length): (usize, usize, usize), flow_limits: FlowLimits) -> Self {
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
            flow_limits,
            slow_hold: None,
        }
    }

    /// Other rules hold for what one flow may take. Nothing is known of any flow.
    pub(crate) fn set_flow_limits(&mut self, now: i64, flow_limits: FlowLimits) -> Vec<Happened> {
        self.forget();
        let mut happened = Vec::new();
        if self.flow_limits != flow_limits {
            self.flow_limits = flow_limits;
            let pace = self.first_pace();
            self.flows.values_mut().for_each(|flow| flow.pace = pace);
        }
        self.dispatch(now, &mut happened);
        happened
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
        let (base, estimate, pace) = (self.virtual_time, self.estimate, self.first_pace());
        let fresh = PlainFlow { weight: 1, base, estimate, pace, waiting: VecDeque::new() };
        self.flows.entry(new.flow).or_insert(fresh).weight = new.weight;
        self.lift(now, new.flow);
        let is_next = self.waiting() == 0 && !is_saturated && self.accommodates(new.seats);
        if is_next && self.may_take(now, new.flow, new.seats) {
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
        let head_of =
            self.flows.iter().find(|(_, flow)| flow.waiting.front().is_some_and(|head| head.request == request));
        let frees = head_of.is_some_and(|(hash, flow)| self.standing(*hash, flow.waiting[0].seats) != Standing::Open);
        if self.remove(request) || frees {
            self.dispatch(now, &mut happened);
        }
        happened
    }

    /// CO-4: the flow of a request has used more, or less.
    pub(crate) fn charge_more(&mut self, request: usize, seat_time: i64) {
        self.forget();
        let flow = self.flows.get_mut(&self.running[&request].flow).unwrap();
        let key = key_of(seat_time.unsigned_abs(), flow.weight);
        flow.base += if seat_time < 0 { -key } else { key };
    }

    /// CO-4: what a request used on the seats that it had is settled.
    pub(crate) fn resize(&mut self, now: i64, request: usize, seats: u32) -> Vec<Happened> {
        self.forget();
        let running = self.running.get_mut(&request).unwrap();
        let flow = self.flows.get_mut(&running.flow).unwrap();
        flow.base += key_of((now - running.resized).unsigned_abs() * u64::from(running.seats), flow.weight);
        (running.seats, running.resized) = (seats, now);
        let mut happened = Vec::new();
        self.dispatch(now, &mut happened);
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
        let may_start = |(hash, flow): (&u64, &PlainFlow)| match flow.waiting.front() {
            Some(head) => self.standing(*hash, head.seats) == Standing::Open,
            None => false,
        };
        self.seats_in_use() < self.seats && self.turn.is_none() && self.flows.iter().any(may_start)
    }

    /// The seats that are kept for newcomers, as a level shows them.
    pub(crate) fn kept_seats(&self) -> i64 {
        let slow = self.seats_in_use() - self.quick_in_use();
        if slow > 0 && slow + self.share() >= self.level_seats() { self.share() } else { 0 }
    }

    /// Whether no flow holds more than it may, other than by one request (PF-11).
    pub(crate) fn keeps_flow_limits(&self) -> bool {
        let most = self.flow_seats_max();
        self.flows.keys().all(|hash| {
            let of_flow = || self.running.values().filter(|running| running.flow == *hash);
            of_flow().map(|running| i64::from(running.seats)).sum::<i64>() <= most || of_flow().count() <= 1
        })
    }

    fn first_pace(&self) -> Pace {
        match self.flow_limits.newcomer_seats {
            NewcomerSeats::Auto => Pace::Unknown,
            share if share.is_none() => Pace::Quick,
            NewcomerSeats::Share(_) => Pace::Slow,
        }
    }

    fn level_seats(&self) -> i64 {
        self.seats.max(self.seats_in_use())
    }

    /// A request that holds its seats for longer is slow.
    fn quick_max(&self) -> u64 {
        (self.flow_limits.newcomer_wait * self.level_seats()).unsigned_abs()
    }

    /// PF-10: how many seats are kept.
    fn share(&self) -> i64 {
        let most = self.level_seats() / 4;
        match (self.flow_limits.newcomer_seats, self.slow_hold) {
            (NewcomerSeats::Share(share), _) => seats_of(share, self.level_seats()),
            (NewcomerSeats::Auto, None) => most,
            (NewcomerSeats::Auto, Some(hold)) => {
                let quick_max = i128::from(self.quick_max().max(1));
                let beyond = (i128::from(hold) - quick_max).max(0);
                let steps = (beyond * i128::from(most) + quick_max - 1) / quick_max;
                i64::try_from(steps.max(1)).unwrap().min(most)
            }
        }
    }

    fn flow_seats_max(&self) -> i64 {
        self.flow_limits.flow_seats_max.map_or(i64::MAX, |share| seats_of(share, self.seats))
    }

    fn quick_in_use(&self) -> i64 {
        let quick = self.running.values().filter(|running| self.flows[&running.flow].pace == Pace::Quick);
        quick.map(|running| i64::from(running.seats)).sum()
    }

    /// The seats that a flow has to leave free which is not known to be quick.
    fn kept(&self) -> i64 {
        (self.share() - self.quick_in_use()).max(0)
    }

    fn standing(&self, hash: u64, seats: u32) -> Standing {
        let of_flow = || self.running.values().filter(|running| running.flow == hash);
        let held: i64 = of_flow().map(|running| i64::from(running.seats)).sum();
        if of_flow().count() == 0 {
            Standing::Open
        } else if held + i64::from(seats) > self.flow_seats_max() {
            Standing::Full
        } else if self.flows[&hash].pace == Pace::Quick {
            Standing::Open
        } else {
            Standing::Held
        }
    }

    /// Whether what runs of a flow is expected to hold its seats for too long, or has done so.
    fn is_slow(&self, now: i64, hash: u64) -> bool {
        let of_flow = || self.running.values().filter(|running| running.flow == hash);
        let held: u64 = of_flow().map(|running| u64::from(running.seats)).sum();
        self.charge(now, hash) > self.quick_max() * held
    }

    /// A request of a flow has started or ended.
    fn judge(&mut self, now: i64, hash: u64) {
        if self.first_pace() == Pace::Unknown && self.flows[&hash].pace != Pace::Unknown {
            let pace = if self.is_slow(now, hash) { Pace::Slow } else { Pace::Quick };
            self.flows.get_mut(&hash).unwrap().pace = pace;
        }
    }

    /// A quick flow is found to have become slow while nothing of it ended.
    fn notice_slow(&mut self, now: i64, hash: u64) -> bool {
        let has_slowed = self.first_pace() == Pace::Unknown
            && self.flows[&hash].pace == Pace::Quick
            && self.running.values().any(|running| running.flow == hash)
            && self.is_slow(now, hash);
        if has_slowed {
            self.flows.get_mut(&hash).unwrap().pace = Pace::Slow;
        }
        has_slowed
    }

    /// Whether a request of a flow may take its seats, if there are enough.
    fn may_take(&mut self, now: i64, hash: u64, seats: u32) -> bool {
        self.notice_slow(now, hash);
        match self.standing(hash, seats) {
            Standing::Open => true,
            Standing::Held => self.leaves_kept(seats),
            Standing::Full => false,
        }
    }

    fn leaves_kept(&self, seats: u32) -> bool {
        self.kept() == 0 || self.seats_in_use() + i64::from(seats) + self.kept() <= self.seats
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
        self.flows[&hash].base + key_of(self.charge(now, hash), self.flows[&hash].weight)
    }

    fn charge(&self, now: i64, hash: u64) -> u64 {
        let running = || self.running.values().filter(|running| running.flow == hash);
        let by_time = running().map(|running| (now - running.resized).unsigned_abs() * u64::from(running.seats)).sum();
        let at_dispatch = running().count() as u64 * self.flows[&hash].estimate;
        at_dispatch.max(by_time)
    }

    /// The waiting flow with the least key among those with that standing, with its key and the arrival of its head.
    fn least_of(&self, now: i64, standing: Standing) -> Option<(i128, u64, u64)> {
        let holders: BTreeSet<u64> = self.running.values().map(|running| running.flow).collect();
        let heads = self.flows.iter().filter_map(|(hash, flow)| Some((*hash, flow, *flow.waiting.front()?)));
        let heads = heads.filter_map(|(hash, flow, head)| {
            // Most flows hold nothing, and are quickly done with.
            let (found, key) = if holders.contains(&hash) {
                (self.standing(hash, head.seats), self.key(now, hash))
            } else {
                (Standing::Open, flow.base)
            };
            (found == standing).then_some((key, head.arrival, hash))
        });
        heads.min()
    }

    /// PF-4: the virtual time follows the least key among those that wait, unless they hold as much as they may.
    fn follow(&mut self, now: i64) {
        let least = [Standing::Open, Standing::Held].map(|standing| self.least_of(now, standing));
        if let Some((key, ..)) = least.into_iter().flatten().min() {
            self.virtual_time = self.virtual_time.max(key);
        }
    }

    /// The flow that is next: see PF-2 and PF-10.
    fn choose(&mut self, now: i64) -> Option<u64> {
        loop {
            self.follow(now);
            let open = self.least_of(now, Standing::Open);
            if let Some((_, _, hash)) = open
                && self.notice_slow(now, hash)
            {
                continue;
            }
            let held = self.least_of(now, Standing::Held);
            let held = held.filter(|(_, _, hash)| self.leaves_kept(self.flows[hash].waiting[0].seats));
            return open.into_iter().chain(held).min().map(|(_, _, hash)| hash);
        }
    }

    /// PF-5.
    fn lift(&mut self, now: i64, hash: u64) {
        if self.flows[&hash].waiting.is_empty() {
            self.follow(now);
            let behind = self.virtual_time - self.key(now, hash);
            self.flows.get_mut(&hash).unwrap().base += behind.max(0);
        }
    }

    fn dispatch(&mut self, now: i64, happened: &mut Vec<Happened>) {
        while self.seats_in_use() < self.seats {
            let Some(hash) = self.turn.or_else(|| self.choose(now)) else { return };
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
        self.running.insert(request, Running { flow, seats, started: now, resized: now, executes: true });
        happened.push(Happened::Started(request));
        self.judge(now, flow);
    }

    fn free(&mut self, now: i64, request: usize) {
        let Running { flow, seats, started, resized, .. } = self.running.remove(&request).unwrap();
        let held = (now - started).unsigned_abs();
        let (hash, used) = (flow, held * u64::from(seats));
        let flow = self.flows.get_mut(&hash).unwrap();
        flow.base += key_of((now - resized).unsigned_abs() * u64::from(seats), flow.weight);
        flow.estimate = learnt(flow.estimate, used);
        if flow.pace == Pace::Unknown {
            flow.pace = Pace::Quick;
        }
        self.estimate = learnt(self.estimate, used);
        self.judge(now, hash);
        if held > self.quick_max() {
            let mean = self.slow_hold.map_or(held, |mean| (mean - mean / 8 + held / 8).min(4 * mean));
            self.slow_hold = Some(mean);
        }
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

/// A percentage is rounded up.
fn seats_of(share: SeatShare, seats: i64) -> i64 {
    match share {
        SeatShare::Seats(count) => count.into(),
        SeatShare::Percent(percent) => (seats * i64::from(percent) + 99) / 100,
    }
}

fn load(seats: u64, weight: u16) -> u64 {
    (seats << 32) / u64::from(weight)
}

/// PF-3.
fn learnt(estimate: u64, used: u64) -> u64 {
    (estimate - estimate / 8 + used / 8).min(4 * estimate).max(1000)
}
