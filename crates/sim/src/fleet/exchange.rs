//! `Exchange`: the members of a fleet, and their messages to a simulated etcd and back.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use evenkeel_engine::fleet_division::InstanceLoad;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos};
use evenkeel_fleet::{
    Allowance, Call, CurrentUsage, EtcdCounts, FleetSettings, FoundSeats, LimitInput, LoadSource, Member, POLL_PERIOD,
    ProcessNonce, RateLoad, Reply, SeenLevel, SimulatedEtcd, WatchedChange,
};

use crate::auto_seats::AutoSettings;
use crate::random::{DrawPurpose, Random};
use crate::server_settings::ServerSettings;
use crate::simulator::Simulator;
use crate::traffic::{Token, Traffic};
use crate::workload::{Distribution, Instances};

/// The members, and the messages on their way between them and etcd.
pub(super) struct Exchange {
    members: Vec<FleetMember>,
    etcd: SimulatedEtcd,
    lease_ttl: Nanos,
    queue: BinaryHeap<Reverse<Queued>>,
    sequence: u64,
    delay: Distribution,
    loss: f64,
    events: u64,
    lost: u64,
    /// When counting began.
    counts_before: EtcdCounts,
}

/// One instance.
struct FleetMember {
    member: Member,
    allowed: Allowance,
    /// The demand for rates, and when it was measured.
    rates: Vec<RateLoad>,
    rates_at: Nanos,
    random: Random,
}

/// Something that will happen.
struct Queued {
    at: Nanos,
    sequence: u64,
    instance: usize,
    message: Message,
}

enum Message {
    /// The member is polled.
    Poll,
    /// The allowance ends, unless it was renewed.
    End,
    /// A call arrives at etcd.
    Call(Call),
    /// etcd's response arrives.
    Reply(u64, Reply),
    /// A change arrives.
    Watch(WatchedChange),
}

/// An instance, as its member sees it.
struct Observed<'a> {
    simulator: &'a Simulator<Token>,
    rates: &'a [RateLoad],
    now: Nanos,
}

/// The demand for rates is measured this often: a member does not publish it more often.
const RATES_PERIOD: Nanos = 250 * MILLISECOND;

/// Leases last for so many ttls.
const LEASE_TTLS: Nanos = 20;

// === impl Exchange ===

impl Exchange {
    pub(super) fn new(instances: &Instances, server: &ServerSettings, seed: u64) -> Self {
        let settings = FleetSettings {
            seats: u64::try_from(server.seats).unwrap_or(0),
            auto: None,
            floor_percent: instances.floor_percent,
            generation: 0,
            terms: instances.terms,
        };
        let found = |auto: &AutoSettings| FoundSeats::unknown(auto.bounds.clone(), auto.start).learnt(auto.learnt);
        let settings = server.auto.as_ref().map_or(settings, |auto| settings.auto(found(auto)));
        let member = |number| {
            let mut random = Random::stream(seed, "instances", number, DrawPurpose::Messages);
            let member = Member::new(settings, ProcessNonce(random.next()), None, random.next());
            FleetMember { member, allowed: Allowance::NONE, rates: Vec::new(), rates_at: 0, random }
        };
        let mut exchange = Self {
            members: (0..instances.count).map(member).collect(),
            etcd: SimulatedEtcd::new(),
            lease_ttl: Nanos::from(instances.terms.ttl_ms) * MILLISECOND * LEASE_TTLS,
            queue: BinaryHeap::new(),
            sequence: 0,
            delay: instances.delay.clone(),
            loss: instances.loss,
            events: 0,
            lost: 0,
            counts_before: EtcdCounts::default(),
        };
        for instance in 0..exchange.members.len() {
            let first = exchange.members[instance].random.between(0, POLL_PERIOD);
            exchange.push(first, instance, Message::Poll);
        }
        exchange
    }

    /// When the next message arrives.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.queue.peek().map(|Reverse(next)| next.at)
    }

    pub(super) fn events(&self) -> u64 {
        self.events
    }

    /// The seats of the service, by the ledger.
    pub(super) fn service_seats(&self) -> i64 {
        self.etcd.ledger().map_or(0, |ledger| i64::try_from(ledger.seats).unwrap_or(i64::MAX))
    }

    /// Whether an instance finds out how many there should be.
    pub(super) fn finds_seats(&self) -> bool {
        self.etcd.ledger().is_some_and(|ledger| ledger.auto.is_some())
    }

    /// What was written to etcd, and how many messages were lost.
    pub(super) fn counts(&self) -> (EtcdCounts, u64) {
        (self.etcd.counts().since(self.counts_before), self.lost)
    }

    pub(super) fn reset_counts(&mut self) {
        (self.counts_before, self.lost) = (self.etcd.counts(), 0);
    }

    /// The next message arrives. Returns whose it is.
    pub(super) fn step(&mut self, simulators: &mut [Simulator<Token>], traffic: &mut Traffic<'_>) -> usize {
        let Some(Reverse(Queued { at: now, instance, message, .. })) = self.queue.pop() else { return 0 };
        self.events += 1;
        let time = Instant::from_nanos(now);
        let member = &mut self.members[instance].member;
        match message {
            Message::Poll => {
                if let Some(id) = member.id() {
                    self.etcd.keep_alive(time, id);
                }
                self.push(now + POLL_PERIOD, instance, Message::Poll);
            }
            Message::End => {
                self.wake_at_end(time, instance);
            }
            Message::Call(call) => {
                self.answer(now, instance, call);
                return instance;
            }
            Message::Reply(number, reply) => member.handle_reply(time, number, reply),
            Message::Watch(change) => member.handle_watch(time, change),
        }
        self.poll(now, instance, &mut simulators[instance], traffic);
        instance
    }

    /// Puts the allowance into effect, and polls the member (FL-6).
    fn poll(&mut self, now: Nanos, instance: usize, simulator: &mut Simulator<Token>, traffic: &mut Traffic<'_>) {
        let time = Instant::from_nanos(now);
        self.allow(now, instance, simulator, traffic);
        let FleetMember { member, rates, rates_at, .. } = &mut self.members[instance];
        if now - *rates_at >= RATES_PERIOD {
            (*rates, *rates_at) = (simulator.rates(time), now);
        }
        let observed = Observed { simulator, rates, now };
        let call = member.poll(time, &observed);
        while member.poll_event().is_some() {}
        if let Some(shares) = member.rate_shares(time) {
            simulator.share_rates(&shares, time);
        }
        self.allow(now, instance, simulator, traffic);
        if let Some(call) = call {
            self.send(now, instance, Message::Call(call));
        }
    }

    fn allow(&mut self, now: Nanos, instance: usize, simulator: &mut Simulator<Token>, traffic: &mut Traffic<'_>) {
        let time = Instant::from_nanos(now);
        let allowance = self.members[instance].member.allowance();
        if self.members[instance].allowed != allowance {
            self.members[instance].allowed = allowance;
            self.wake_at_end(time, instance);
        }
        let seats = i64::try_from(allowance.seats(time)).unwrap_or(i64::MAX);
        if simulator.engine().controller().server_limit() != seats {
            simulator.set_seats(now, seats, traffic);
        }
    }

    /// Schedules the end of the allowance (FL-8).
    fn wake_at_end(&mut self, now: Instant, instance: usize) {
        let Allowance { grant_until, floor_until, .. } = self.members[instance].allowed;
        if let Some(end) = [grant_until, floor_until].into_iter().find(|end| *end > now) {
            self.push(end.as_nanos(), instance, Message::End);
        }
    }

    /// etcd carries out a call, and sends the reply and the changes.
    fn answer(&mut self, now: Nanos, instance: usize, call: Call) {
        let (reply, changes) = self.etcd.apply(Instant::from_nanos(now), call.operation, self.lease_ttl);
        for change in changes {
            for other in 0..self.members.len() {
                self.send(now, other, Message::Watch(change.clone()));
            }
        }
        self.send(now, instance, Message::Reply(call.number, reply));
    }

    /// A message is on its way, or lost.
    fn send(&mut self, now: Nanos, instance: usize, message: Message) {
        let random = &mut self.members[instance].random;
        if random.fraction() < self.loss {
            self.lost += 1;
            return;
        }
        let delay = self.delay.draw(random);
        self.push(now.saturating_add(delay), instance, message);
    }

    fn push(&mut self, at: Nanos, instance: usize, message: Message) {
        self.sequence += 1;
        self.queue.push(Reverse(Queued { at, sequence: self.sequence, instance, message }));
    }
}

// === impl Observed ===

impl LoadSource for Observed<'_> {
    fn usage(&self) -> CurrentUsage {
        let mut usage = CurrentUsage::default();
        for level in self.simulator.engine().levels() {
            if matches!(level.queue_set.mode(), Mode::Exempt) {
                continue;
            }
            let [in_use, waiting] = [level.queue_set.seats_in_use(), level.queue_set.seats_waiting()]
                .map(|seats| u64::try_from(seats).unwrap_or(0));
            usage.in_use += in_use;
            usage.demands.push((level.name.to_owned(), in_use + waiting));
        }
        usage
    }

    fn load(&self, service_seats: u64) -> Arc<InstanceLoad> {
        let engine = self.simulator.engine();
        let seats = i64::try_from(service_seats).unwrap_or(i64::MAX);
        let stakes = engine.controller().stakes_with(seats).filter(|(.., stake)| !stake.is_exempt);
        let levels = stakes.filter_map(|(name, id, stake)| {
            let set = engine.queue_set(id)?;
            let seen = SeenLevel::new(set, set.seats_in_use());
            (seen.demand() > 0).then(|| seen.into_load(name.to_owned(), stake))
        });
        Arc::new(InstanceLoad { levels: levels.collect() })
    }

    fn limit_input(&self) -> Option<LimitInput> {
        let totals = self.simulator.totals(self.now)?;
        Some(LimitInput { totals, floor: self.simulator.engine().controller().seats_min(), is_held_down: false })
    }

    fn rates(&self) -> Vec<RateLoad> {
        self.rates.to_vec()
    }
}

// === impl Queued ===

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Queued {}
