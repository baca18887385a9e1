//! All processes, their etcd and the network between them: one event after the other, from a seed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use evenkeel_engine::auto_limit::Totals;
use evenkeel_engine::fleet_division::{FlowLoad, InstanceLoad, LevelLoad};
use evenkeel_engine::time::Instant;
use evenkeel_fleet::{
    Call, FleetSettings, FoundSeats, InstanceId, LedgerKey, ProcessNonce, Reply, SimulatedEtcd, Terms, WatchedChange,
};

use super::checker::Checker;
use super::network::Network;
use super::process::Process;
use super::seeded::SeededFault;
use super::{MS, SEC, Time};

/// What is simulated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) processes: usize,
    pub(crate) settings: FleetSettings,
    pub(crate) fault: Option<SeededFault>,
    /// Whether anything goes wrong.
    pub(crate) is_faulty: bool,
    /// Whether all requests are shorter than the grace.
    pub(crate) is_bounded: bool,
    /// Whether rollouts change the seats of the service.
    pub(crate) is_resized: bool,
    /// Requests of many seconds, in a thousand.
    pub(crate) long_permille: u32,
    /// How often a process polls.
    pub(crate) tick: Time,
    /// What the service does, if the fleet finds out how many seats it should have.
    pub(crate) auto: Option<AutoPlan>,
}

/// What a service does whose seats the fleet finds.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AutoPlan {
    /// What instances publish is noise: the seats change all the time.
    Noise,
    /// It works on so many requests at a time, and gets slower with more.
    Collapse { slots: u64 },
}

#[derive(Debug)]
pub(crate) struct World {
    pub(super) plan: Plan,
    /// The real grace: what requests are shorter than.
    terms: Terms,
    pub(super) random: fastrand::Rng,
    pub(crate) now: Time,
    order: u64,
    queue: BinaryHeap<Reverse<(Time, u64, usize)>>,
    slots: Vec<Option<Event>>,
    free_slots: Vec<usize>,
    pub(crate) processes: Vec<Process>,
    pub(crate) etcd: SimulatedEtcd,
    pub(super) network: Network,
    pub(crate) checker: Checker,
    pub(crate) events: u64,
    /// Requests that were done.
    pub(crate) finished: u64,
    /// What was decided about the seats, in sentences.
    pub(crate) decisions: Vec<String>,
    nonces: u64,
}

/// A process in a place: another one may be there when the event is due.
type Place = (usize, ProcessNonce);

#[derive(Debug, Clone)]
pub(super) enum Event {
    Poll(Place),
    KeepAlive(Place),
    /// A call arrives at etcd. It was sent when the process's clock showed this.
    Request(Place, Box<Call>),
    Reply(Place, u64, Box<Reply>),
    Watch(Place, Box<WatchedChange>),
    /// The service has done a request, and the process knows.
    Finish(Place, Time),
    /// The process learns late that the service has done a request.
    LateFinish(Place, Time),
    Boot(usize),
    Fault,
    Demand,
}

// === impl Plan ===

impl Plan {
    /// A fleet under all faults, different for every seed.
    pub(crate) fn faulty(seed: u64, fault: Option<SeededFault>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let is_bounded = seed.is_multiple_of(2);
        let ttl_ms = random.choice([1_000, 3_000, 5_000]).expect("a choice");
        let grace_ms = if fault == Some(SeededFault::GraceZero) { 0 } else { ttl_ms };
        let floor_hold_ms = random.choice([20_000, 60_000]).expect("a choice");
        let terms = Terms { ttl_ms, grace_ms, floor_hold_ms };
        let floor_percent = random.choice([0, 10, 20, 50, 100]).expect("a choice");
        let settings = FleetSettings { seats: random.u64(10..60), auto: None, floor_percent, generation: 0, terms };
        Self {
            seed,
            processes: random.usize(3..9),
            settings,
            fault,
            is_faulty: true,
            is_bounded,
            is_resized: seed % 5 == 3,
            long_permille: if is_bounded { 0 } else { random.choice([0, 5, 30]).expect("a choice") },
            tick: 60 * MS,
            auto: None,
        }
    }

    /// The same, with seats that change all the time because an instance finds them.
    pub(crate) fn faulty_with_found_seats(seed: u64) -> Self {
        let plan = Self::faulty(seed, None);
        let found = FoundSeats::unknown(2..=60, u32::try_from(plan.settings.seats).expect("a few seats"));
        Self { settings: plan.settings.auto(found), is_resized: false, auto: Some(AutoPlan::Noise), ..plan }
    }

    /// A fleet without faults in front of a service that works on so many requests at a time, and gets slower with more.
    pub(crate) fn calm_with_found_seats(seed: u64, processes: usize, slots: u64, start: u32) -> Self {
        let settings = FleetSettings::default().auto(FoundSeats::unknown(1..=400, start));
        Self { auto: Some(AutoPlan::Collapse { slots }), ..Self::calm(seed, processes, settings) }
    }

    /// A fleet without faults.
    pub(crate) fn calm(seed: u64, processes: usize, settings: FleetSettings) -> Self {
        Self {
            seed,
            processes,
            settings,
            fault: None,
            is_faulty: false,
            is_bounded: true,
            is_resized: false,
            long_permille: 0,
            tick: 20 * MS,
            auto: None,
        }
    }
}

// === impl World ===

impl World {
    pub(crate) fn new(plan: Plan) -> Self {
        let mut terms = plan.settings.terms;
        terms.grace_ms = terms.ttl_ms;
        let mut world = Self {
            plan,
            terms,
            random: fastrand::Rng::with_seed(plan.seed.wrapping_mul(7919)),
            now: 0,
            order: 0,
            queue: BinaryHeap::new(),
            slots: Vec::new(),
            free_slots: Vec::new(),
            processes: Vec::new(),
            etcd: SimulatedEtcd::new(),
            network: Network::new(plan.is_faulty),
            checker: Checker::new(plan.settings.seats, plan.is_bounded),
            events: 0,
            finished: 0,
            decisions: Vec::new(),
            nonces: 0,
        };
        // Two places more, where namesakes can appear.
        for at in 0..plan.processes + if plan.is_faulty { 2 } else { 0 } {
            let mut process = Process::new(at as u64, ProcessNonce(0), None, plan.settings);
            process.is_alive = false;
            world.processes.push(process);
            if at < plan.processes {
                world.start_process(at, at as u64, None, plan.settings);
            }
        }
        if plan.is_faulty {
            world.push(2 * SEC, Event::Fault);
            world.push(SEC, Event::Demand);
        }
        world
    }

    /// Runs up to a number of events, or until something is violated.
    pub(crate) fn run(&mut self, events: u64) {
        let end = self.events + events;
        while self.events < end && self.checker.violation.is_none() && self.step(Time::MAX) {}
    }

    /// Runs until a time, or until something is violated.
    pub(crate) fn run_until(&mut self, time: Time) {
        while self.checker.violation.is_none() && self.step(time) {}
        self.now = self.now.max(time);
    }

    /// Ends all faults: everything that lives works from now on.
    pub(crate) fn heal(&mut self) {
        (self.plan.is_faulty, self.network.is_faulty) = (false, false);
        (self.network.slow_until, self.network.etcd_down_until) = (0, 0);
        let now = self.now;
        for process in &mut self.processes {
            process.cut_until = 0;
            process.stopped_until = process.stopped_until.min(now);
            process.duration = process.duration.min(400 * MS);
        }
        (self.plan.long_permille, self.plan.tick) = (0, 20 * MS);
    }

    /// Stops etcd until it is started.
    pub(crate) fn stop_etcd(&mut self, until: Time) {
        self.network.etcd_down_until = until;
    }

    pub(crate) fn kill_for_good(&mut self, at: usize) {
        self.processes[at].is_alive = false;
    }

    /// Requests in use by all that live.
    pub(crate) fn in_use(&self) -> u64 {
        self.processes.iter().filter(|process| process.is_alive).map(|process| process.in_use).sum()
    }

    /// A process wants this many seats for one flow.
    pub(crate) fn want(&mut self, at: usize, flow: u64, wanted: u64) {
        self.want_flows(at, &[(0, flow, wanted)]);
    }

    fn want_flows(&mut self, at: usize, flows: &[(usize, u64, u64)]) {
        let seats = self.plan.settings.seats;
        let level = |(at, shares): (usize, u64)| {
            let of_level = flows.iter().filter(|(level, ..)| *level == at);
            let flows: Vec<FlowLoad> =
                of_level.map(|&(_, hash, demand)| FlowLoad { hash, weight: 1 + hash % 2, demand }).collect();
            LevelLoad {
                name: at.to_string(),
                floor: seats * shares / 12,
                nominal: seats * shares / 6,
                max: seats,
                borrowing_weight: shares,
                demand: flows.iter().map(|flow| flow.demand).sum(),
                flow_weight: flows.iter().map(|flow| flow.weight).sum(),
                flows,
            }
        };
        let levels: Vec<LevelLoad> = [3, 2, 1].into_iter().enumerate().map(level).collect();
        let process = &mut self.processes[at];
        process.pass(self.now);
        process.wanted = flows.iter().map(|(.., demand)| demand).sum();
        process.load = Arc::new(InstanceLoad { levels });
    }

    fn want_at_random(&mut self, at: usize) {
        let seats = self.plan.settings.seats;
        let mode = self.random.u32(0..4);
        let mut flows = Vec::new();
        for level in 0..3 {
            for flow in 0..4 {
                let demand = match mode {
                    1 if self.random.u32(0..1000) < 150 => self.random.u64(0..seats),
                    2 => self.random.u64(0..=seats / 6),
                    3 if self.random.bool() => self.random.u64(0..=seats / 3),
                    _ => 0,
                };
                if demand > 0 {
                    flows.push((level, flow, demand));
                }
            }
        }
        self.want_flows(at, &flows);
    }

    pub(super) fn start_process(
        &mut self,
        at: usize,
        name: u64,
        predecessor: Option<ProcessNonce>,
        settings: FleetSettings,
    ) {
        self.nonces += 1;
        let nonce = ProcessNonce(self.plan.seed.wrapping_mul(1_000_003).wrapping_add(self.nonces));
        let mut process = Process::new(name, nonce, predecessor, settings);
        if self.plan.is_faulty {
            process.drift = self.random.i64(-1000..=1000);
            let duration = self.random.choice([20 * MS, 100 * MS, 400 * MS, 1500 * MS]).expect("a choice");
            let longest = Time::from(self.terms.grace_ms) * MS * 4 / 7;
            process.duration = if self.plan.is_bounded { duration.min(longest) } else { duration };
        }
        process.pass(self.now);
        process.totals = settings.auto.map(|_| Totals::default());
        self.processes[at] = process;
        if self.plan.is_faulty {
            self.want_at_random(at);
        }
        let first = self.now + self.random.i64(0..100 * MS);
        self.push(first, Event::Poll((at, nonce)));
        self.push(first, Event::KeepAlive((at, nonce)));
    }

    pub(super) fn push(&mut self, time: Time, event: Event) {
        self.order += 1;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(event);
        self.queue.push(Reverse((time.max(self.now), self.order, slot)));
    }

    /// One event; false if there is none before that time.
    fn step(&mut self, until: Time) -> bool {
        let Some(Reverse((time, _, slot))) = self.queue.peek().copied().filter(|next| next.0.0 <= until) else {
            return false;
        };
        self.queue.pop();
        self.free_slots.push(slot);
        let event = self.slots[slot].take().expect("an event in each slot of the queue");
        self.now = time;
        if let Some(event) = self.unless_stopped(event) {
            self.events += 1;
            self.happen(event);
            self.checker.check(self.now, &mut self.processes, self.terms, self.plan.fault);
        }
        true
    }

    /// What concerns a process that is stopped waits; what concerns one that is dead is dropped.
    fn unless_stopped(&mut self, event: Event) -> Option<Event> {
        let (at, nonce) = match &event {
            Event::Poll(place)
            | Event::KeepAlive(place)
            | Event::Reply(place, ..)
            | Event::Watch(place, ..)
            | Event::Finish(place, _)
            | Event::LateFinish(place, _) => *place,
            Event::Request(..) | Event::Boot(_) | Event::Fault | Event::Demand => return Some(event),
        };
        let process = &mut self.processes[at];
        if !process.is_alive || process.nonce != nonce {
            return None;
        }
        if !process.is_stopped(self.now) {
            return Some(event);
        }
        // The service goes on while a process is stopped.
        let event = if let Event::Finish(place, took) = event {
            process.at_service -= 1;
            Event::LateFinish(place, took)
        } else {
            event
        };
        let later = process.stopped_until + self.random.i64(0..MS);
        self.push(later, event);
        None
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Poll(place) => {
                self.poll(place.0);
                let tick = self.plan.tick;
                let next = self.now + self.random.i64(tick / 2..tick * 3 / 2);
                self.push(next, Event::Poll(place));
            }
            Event::KeepAlive(place) => self.keep_alive(place),
            Event::Request(place, call) => self.request(place, *call),
            Event::Reply((at, _), number, reply) => {
                self.obey_faultily(at, &reply.snapshot.ledger);
                let clock = self.processes[at].clock(self.now, self.plan.fault);
                let is_renewal = reply.is_written && self.plan.fault == Some(SeededFault::ExpiryFromResponse);
                self.processes[at].member.handle_reply(clock, number, *reply);
                if is_renewal {
                    self.processes[at].renew_faultily(clock);
                }
                self.poll(at);
            }
            Event::Watch((at, _), change) => {
                if let WatchedChange::Ledger(ledger) = &*change {
                    self.obey_faultily(at, ledger);
                }
                let clock = self.processes[at].clock(self.now, self.plan.fault);
                self.processes[at].member.handle_watch(clock, *change);
                self.poll(at);
            }
            Event::Finish((at, _), took) => {
                self.processes[at].at_service -= 1;
                self.finish(at, took);
            }
            Event::LateFinish((at, _), took) => self.finish(at, took),
            Event::Boot(at) => self.boot(at),
            Event::Fault => {
                if self.plan.is_faulty {
                    self.inject_fault();
                    let longest = if self.random.u32(0..1000) < 300 { SEC / 2 } else { 6 * SEC };
                    let next = self.now + self.random.i64(0..longest);
                    self.push(next, Event::Fault);
                }
            }
            Event::Demand => {
                if self.plan.is_faulty {
                    let at = self.random.usize(0..self.processes.len());
                    if !self.processes[at].is_draining {
                        self.want_at_random(at);
                    }
                    let next = self.now + self.random.i64(0..2 * SEC);
                    self.push(next, Event::Demand);
                }
            }
        }
    }

    /// A process comes back: by its name, with the lock of the dead one, or as a new one.
    fn boot(&mut self, at: usize) {
        if self.processes[at].is_alive {
            return;
        }
        let settings = self.next_settings();
        let (name, nonce) = (self.processes[at].name, self.processes[at].nonce);
        if self.random.u32(0..1000) < 600 {
            self.start_process(at, name, Some(nonce), settings);
        } else {
            let name = 1000 + self.nonces;
            self.start_process(at, name, None, settings);
        }
    }

    fn obey_faultily(&mut self, at: usize, ledger: &LedgerKey) {
        if let LedgerKey::Written { ledger, .. } = ledger
            && self.plan.fault == Some(SeededFault::OlderLedgerApplied)
        {
            self.processes[at].obey_faultily(ledger);
        }
    }

    /// Starts what may start, then asks etcd what has to be asked.
    fn poll(&mut self, at: usize) {
        self.start_requests(at);
        self.sum_up(at);
        let clock = self.processes[at].clock(self.now, self.plan.fault);
        let process = &mut self.processes[at];
        while process.member.poll_event().is_some() {}
        let decided = process.member.take_limit_changes();
        self.decisions.extend(decided.iter().map(|change| format!("{} ms: {change}", self.now / MS)));
        let current = process.current_load();
        let Some(mut call) = process.member.poll(clock, &current) else {
            if process.member.is_gone() {
                self.kill(at);
            }
            return;
        };
        if let Some(fault) = self.plan.fault {
            fault.change_operation(&mut call.operation);
        }
        let place = (at, process.nonce);
        if self.now < process.cut_until || self.network.loses(10, &mut self.random) {
            return;
        }
        let arrives = self.now + self.network.delay(self.now, &mut self.random);
        self.push(arrives, Event::Request(place, Box::new(call)));
    }

    /// What the process can tell of what has happened.
    fn sum_up(&mut self, at: usize) {
        let process = &mut self.processes[at];
        process.pass(self.now);
        if let (Some(AutoPlan::Noise), Some(totals)) = (self.plan.auto, &mut process.totals) {
            let mut any = |most: f64| self.random.f64() * most;
            totals.good += any(30.0);
            totals.failed += if any(1.0) < 0.02 { any(40.0) } else { 0.0 };
            totals.seat_seconds += any(0.6);
            totals.squares += any(0.02);
            totals.waited += any(0.1);
        }
    }

    /// How many times as long a request takes that starts now.
    fn slowness(&self) -> i64 {
        let Some(AutoPlan::Collapse { slots }) = self.plan.auto else { return 1000 };
        let inside: u64 = self.processes.iter().map(|process| process.at_service).sum();
        let excess = inside.saturating_sub(slots);
        let thousandths = 1000 * inside.max(slots) / slots * (1000 + 20 * excess) / 1000;
        i64::try_from(thousandths).expect("a time")
    }

    fn start_requests(&mut self, at: usize) {
        let (limit, _) = self.processes[at].limit(self.now, self.terms, self.plan.fault);
        let limit = limit.min(self.processes[at].wanted);
        let place = (at, self.processes[at].nonce);
        self.processes[at].pass(self.now);
        while self.processes[at].in_use < limit {
            self.processes[at].in_use += 1;
            self.processes[at].at_service += 1;
            let duration = self.processes[at].duration;
            let is_long = self.random.u32(0..1000) < self.plan.long_permille;
            let takes = if is_long {
                self.random.i64(2 * SEC..20 * SEC)
            } else {
                self.random.i64(duration / 4..duration * 7 / 4) * self.slowness() / 1000
            };
            self.push(self.now + takes, Event::Finish(place, takes));
        }
    }

    fn finish(&mut self, at: usize, took: Time) {
        let process = &mut self.processes[at];
        process.pass(self.now);
        process.note_end(took);
        self.finished += 1;
        process.in_use -= 1;
        process.overrun = process.overrun.saturating_sub(1);
        self.start_requests(at);
    }

    fn request(&mut self, place: Place, mut call: Call) {
        let now = self.now;
        if now < self.network.etcd_down_until {
            // Some calls wait for etcd, longer than their caller does.
            let later = self.network.etcd_down_until + self.random.i64(0..50 * MS);
            if self.random.u32(0..1000) < 300 && later - now < 2 * SEC {
                self.push(later, Event::Request(place, Box::new(call)));
            }
            return;
        }
        if let Some(fault) = self.plan.fault {
            fault.change_comparison(&mut call.operation, self.etcd.ledger_revision());
        }
        let before = self.etcd.counts().ledger_writes;
        let lease_ttl = 20 * Time::from(self.terms.ttl_ms) * MS;
        let (mut reply, changes) = self.etcd.apply(Instant::from_nanos(now), call.operation, lease_ttl);
        if self.etcd.counts().ledger_writes > before
            && let Some(ledger) = self.etcd.ledger()
            && self.plan.fault.is_none()
        {
            self.checker.check_ledger(now, ledger);
        }
        self.watch(changes);
        let process = &self.processes[place.0];
        if process.nonce != place.1 || now < process.cut_until || self.network.loses(20, &mut self.random) {
            return;
        }
        if let Some(fault) = self.plan.fault {
            fault.change_reply(&mut reply);
        }
        let arrives = now + self.network.delay(now, &mut self.random);
        self.push(arrives, Event::Reply(place, call.number, Box::new(reply)));
    }

    /// Watches report changes, most of them, in any order.
    pub(super) fn watch(&mut self, changes: Vec<WatchedChange>) {
        for mut change in changes {
            if let (Some(fault), WatchedChange::Live(key)) = (self.plan.fault, &mut change) {
                key.publication.iter_mut().for_each(|publication| fault.change_publication(publication));
            }
            for at in 0..self.processes.len() {
                let process = &self.processes[at];
                if !process.is_alive || self.now < process.cut_until || self.network.loses(100, &mut self.random) {
                    continue;
                }
                let place = (at, process.nonce);
                let arrives = self.now + self.network.delay(self.now, &mut self.random);
                self.push(arrives, Event::Watch(place, Box::new(change.clone())));
            }
        }
    }

    /// Keeps the lease alive, which renews nothing (FL-8).
    fn keep_alive(&mut self, place: Place) {
        let (at, _) = place;
        let now = self.now;
        let is_connected = now >= self.network.etcd_down_until && now >= self.processes[at].cut_until;
        let id: Option<InstanceId> = self.processes[at].member.id();
        if is_connected && id.is_some_and(|id| self.etcd.keep_alive(Instant::from_nanos(now), id)) {
            let clock = self.processes[at].clock(now, self.plan.fault);
            if self.plan.fault == Some(SeededFault::RenewalByKeepAlive) {
                self.processes[at].renew_faultily(clock);
            }
        }
        self.push(now + Time::from(self.terms.ttl_ms) * MS / 3, Event::KeepAlive(place));
    }
}
