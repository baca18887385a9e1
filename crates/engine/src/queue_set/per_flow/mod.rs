//! Queues per flow: each flow has a queue of its own, and the flow that has used the least seat-time by its weight is next
//! (chapter 2 of `docs/spec/beyond.md`).
//!
//! What a flow has used is known at any time: what its ended requests took, and for those that run the time that they have
//! run, or what they are expected to take if that is more. So costs need not be known before, and a burst of one flow takes
//! turns with the others.
//!
//! `active_flow` has the arithmetic, `flow_table` and `index` the flows, `waiting` their requests, `heap` their order, `crowd`
//! finds who has to give way when the level is full, and `newcomers` says how many seats are kept for flows of which nothing runs.
//!
//! # Identity
//!
//! A flow goes by the 64 bits of [`Flow::hash`], part of a SHA-256 of schema and distinguisher. Among 50,000 flows the
//! chance that any two share them is 10^-10, and to find a name that shares those of a given flow takes 2^64 tries. Two
//! flows that did would share a queue and its turns; nothing else depends on it.

mod active_flow;
mod crowd;
mod flow_table;
mod heap;
mod index;
mod newcomers;
mod view;
mod waiting;

use std::hint::black_box;

use active_flow::{ActiveFlow, FlowStanding, Pace, learnt};
use crowd::Crowd;
use flow_table::FlowTable;
use heap::{FlowHeap, HeapEntry};
use newcomers::{Newcomers, seats_of};
use waiting::Waiting;

use super::requests::{NO_QUEUE, Requests};
use super::turn_order::{Finished, Next, QueueChoice, Resized, TurnOrder};
use super::{FlowLimits, Queuing, Room, SERVICE_TIME_GUESS};
use crate::time::{Instant, Nanos};
use crate::{Flow, SeatSeconds, WorkEstimate};

/// A queue for each flow, and the flow that has used the least is next.
///
/// The key of a queue is the number of its flow.
#[derive(Debug)]
pub(super) struct PerFlow {
    /// `None` while there are to be no queues.
    limits: Option<QueueLimits>,
    queue_length_limit: i64,
    now: Instant,
    flows: FlowTable,
    waiting: Waiting,
    /// The flows that wait and may take any seat, by their keys as of some time: a key only grows until the next event of its flow
    /// (PF-4).
    ready: FlowHeap,
    /// The heap of the flows that leave some seats to newcomers (PF-10).
    held: FlowHeap,
    /// The flows that wait although they hold as many seats as they may (PF-11).
    full: FlowHeap,
    newcomers: Newcomers,
    flow_limits: FlowLimits,
    /// The most seats that one flow holds.
    flow_seats_max: u64,
    nominal: i64,
    /// Flows of which nothing waits or runs, and which have used more than [`virtual_time`](Self::virtual_time) (PF-6).
    idle: FlowHeap,
    crowd: Crowd,
    /// The most that the least key among the waiting flows has been (PF-4).
    virtual_time: i64,
    /// The flow whose turn has come, and whose first request needs more seats than are free (PF-8).
    turn: Option<u32>,
    waiting_count: usize,
    placed: u64,
    /// The expected seat-time of a request of any flow (PF-3).
    estimate: u64,
    /// The virtual time and the key of the flow at the last start.
    last_start: (i64, i64),
}

/// How many requests may wait (PF-7).
#[derive(Debug, Clone, Copy)]
struct QueueLimits {
    level: u64,
    flow: u64,
}

/// So many idle flows are remembered, or as many as there are others if that is more. Without a bound, a client that uses each
/// name only once would make the level remember all of them while others wait.
const IDLE_FLOWS_MAX: usize = 256;
/// With fewer flows than this, all of them are in the cache anyway.
const FAR: usize = 1024;
/// When the virtual time is beyond this, all keys are lowered by it (PF-9): after four years of seat-time for a weight of 1.
const VIRTUAL_TIME_MAX: i64 = 1 << 61;

// === impl PerFlow ===

impl PerFlow {
    /// The queue of a flow, whether it is full or not.
    pub(super) fn queue_of(&mut self, flow: Flow<'_>) -> u32 {
        let known = self.flows.number_of(flow.hash());
        self.queue_for(flow, known)
    }

    /// The queue of a flow that has that number already, if it is known.
    #[inline]
    fn queue_for(&mut self, flow: Flow<'_>, known: Option<u32>) -> u32 {
        let Some(queue) = known else {
            let new = ActiveFlow::new(flow.weight(), self.estimate, self.virtual_time, self.newcomers.first_pace());
            return self.flows.insert(flow.hash(), new);
        };
        let found = self.flows.get_mut(queue);
        let is_idle = found.is_idle();
        if found.weight != flow.weight() {
            found.weight = flow.weight();
            self.update(queue);
        }
        if is_idle {
            self.idle.remove(queue);
        }
        queue
    }

    /// The flows with the least keys at present, of those that may take any seat and of those that leave some. Brings the virtual time
    /// up to the least (PF-4).
    #[inline]
    fn least(&mut self) -> (Option<HeapEntry>, Option<HeapEntry>) {
        let open = least_of(&mut self.ready, &self.flows, self.now);
        let held = least_of(&mut self.held, &self.flows, self.now);
        let least = open.into_iter().chain(held).map(|entry| entry.key).min();
        self.virtual_time = self.virtual_time.max(least.unwrap_or(self.virtual_time));
        (open, held)
    }

    /// The waiting flow that is next, and the seats that it leaves free.
    #[inline]
    fn choose(&mut self, room: Room) -> Option<(u32, i64)> {
        loop {
            let (open, held) = self.least();
            if let Some(first) = open
                && self.has_slowed_down(first.flow)
            {
                self.slow_down(first.flow);
                continue;
            }
            let kept = if held.is_some() { self.newcomers.kept() } else { 0 };
            let held = held.filter(|first| room.leaves(self.flows.get(first.flow).first_seats, kept));
            return match (open, held) {
                (Some(open), Some(held)) if held.is_before(&open) => Some((held.flow, kept)),
                (Some(open), _) => Some((open.flow, 0)),
                (None, held) => held.map(|held| (held.flow, kept)),
            };
        }
    }

    /// Whether what runs of a quick flow has run for too long. It only gets longer until the next event of the flow.
    #[inline]
    fn has_slowed_down(&self, queue: u32) -> bool {
        let flow = self.flows.get(queue);
        flow.running > 0 && flow.pace == Pace::Quick && self.newcomers.pace(flow, self.now) != Pace::Quick
    }

    /// Treats a flow that was quick as slow from now on.
    #[cold]
    fn slow_down(&mut self, queue: u32) {
        let flow = self.flows.get_mut(queue);
        let before = flow.held();
        flow.pace = Pace::Slow;
        self.newcomers.recount(before, flow.held());
        self.update(queue);
    }

    /// A request of a flow has started or ended: counts its seats, and judges the flow anew.
    #[inline]
    fn judge(&mut self, queue: u32, before: (i64, i64)) {
        let flow = self.flows.get_mut(queue);
        let held = flow.held();
        self.newcomers.recount(before, held);
        flow.pace = self.newcomers.pace(flow, self.now);
        self.newcomers.recount(held, flow.held());
    }

    /// Which seats a flow may take for a request of so many seats.
    #[inline]
    fn standing(&self, flow: &ActiveFlow, seats: u32) -> FlowStanding {
        if flow.running == 0 {
            FlowStanding::Open
        } else if flow.seats + u64::from(seats) > self.flow_seats_max {
            FlowStanding::Full
        } else if flow.pace == Pace::Quick {
            FlowStanding::Open
        } else {
            FlowStanding::Held
        }
    }

    /// How many seats a request of a flow would have to leave free if it started now (PF-10); `None` if its flow holds as many
    /// seats as it may (PF-11).
    #[inline]
    pub(super) fn kept_from(&mut self, flow: Flow<'_>, work: WorkEstimate) -> Option<i64> {
        match self.flows.number_of(flow.hash()) {
            Some(queue) => self.kept_from_queue(queue, work.max_seats()),
            None => Some(0),
        }
    }

    /// The seats that a request of a flow would have to leave free; `None` if it may not start whatever is free.
    #[inline]
    fn kept_from_queue(&mut self, queue: u32, seats: u32) -> Option<i64> {
        if self.has_slowed_down(queue) {
            self.slow_down(queue);
        }
        match self.standing(self.flows.get(queue), seats) {
            FlowStanding::Open => Some(0),
            FlowStanding::Held => Some(self.newcomers.kept()),
            FlowStanding::Full => None,
        }
    }

    /// All flows of which something waits, in no order.
    fn waiting_flows(&self) -> impl Iterator<Item = u32> {
        self.ready.flows().chain(self.held.flows()).chain(self.full.flows())
    }

    /// Judges all flows anew: other rules hold.
    #[cold]
    fn judge_all(&mut self) {
        self.newcomers.clear();
        for number in 0..self.flows.numbers_end() {
            if self.flows.find(number).is_none() {
                continue;
            }
            let queue = u32::try_from(number).unwrap_or(NO_QUEUE);
            self.flows.get_mut(queue).pace = self.newcomers.first_pace();
            self.newcomers.recount((0, 0), self.flows.get(queue).held());
            self.update(queue);
        }
    }

    /// A request is about to join a flow of which none waits: the flow starts from the virtual time at least (PF-5).
    ///
    /// That includes a flow of which something runs. One that holds a seat for an hour, and uses less than its share by that,
    /// would otherwise save up the rest.
    #[inline]
    fn lift(&mut self, queue: u32) {
        // While nobody waits, there is no least key.
        if self.waiting_count > 0 {
            self.least();
        }
        let flow = self.flows.get_mut(queue);
        let behind = self.virtual_time.saturating_sub(flow.key(self.now));
        if behind > 0 {
            flow.base = flow.base.saturating_add(behind);
        }
    }

    /// Takes over what changed the key or the head of a flow.
    #[inline]
    fn update(&mut self, queue: u32) {
        let flow = self.flows.get(queue);
        let standing = self.standing(flow, flow.first_seats);
        if flow.waiting == 0 || flow.standing != standing {
            self.heap_of(flow.standing).remove(queue);
            self.flows.get_mut(queue).standing = standing;
        }
        let flow = self.flows.get(queue);
        if flow.waiting > 0 {
            let (key, arrival) = (flow.key(self.now), self.waiting.arrival_of(flow.first));
            self.heap_of(standing).set(queue, key, arrival);
        }
        self.crowd.update(queue, self.flows.get(queue), &self.waiting);
    }

    #[inline]
    fn heap_of(&mut self, standing: FlowStanding) -> &mut FlowHeap {
        match standing {
            FlowStanding::Open => &mut self.ready,
            FlowStanding::Held => &mut self.held,
            FlowStanding::Full => &mut self.full,
        }
    }

    /// A request has left the queue of a flow.
    #[inline]
    fn take_out(&mut self, queue: u32, slot: u32) {
        self.waiting.remove(self.flows.get_mut(queue), slot);
        self.waiting_count -= 1;
    }

    /// Prefetches the request that is probably next, and the flow that is probably next after it: among many flows, neither is in
    /// the cache. The next flow has been fetched at the turn before.
    #[inline]
    fn fetch_next<T>(&self, requests: &Requests<T>) {
        if self.flows.len() < FAR {
            return;
        }
        if let Some(next) = self.ready.first() {
            let first = self.flows.get(next.flow).first;
            black_box(self.waiting.behind(first));
            if let Some(request) = requests.slot(first) {
                black_box((request.phase(), request.arrived));
            }
        }
        if let Some(second) = self.ready.second() {
            black_box(self.flows.get(second.flow).first);
        }
    }

    /// Forgets the flow if it is idle and forgetting it changes no decision (PF-6).
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a part of the identity is enough to break ties")]
    fn forget_if_idle(&mut self, queue: u32) {
        let flow = self.flows.get(queue);
        if !flow.is_idle() {
            return;
        }
        if self.waiting_count == 0 || flow.base <= self.virtual_time {
            self.flows.forget(queue);
        } else {
            // Ties by the identity: what is decided must not depend on the number that a flow has got.
            self.idle.set(queue, flow.base, self.flows.hash_of(queue) as u32);
        }
    }

    /// Forgets idle flows that have used no more than the virtual time; all of them if no request waits, since then every flow
    /// has got what it wanted; and those that have used the least if there are too many.
    #[inline]
    fn forget_idle(&mut self) {
        while let Some(first) = self.idle.first()
            && (self.waiting_count == 0
                || first.key <= self.virtual_time
                || self.idle.len() > IDLE_FLOWS_MAX.max(self.flows.len() / 2))
        {
            self.idle.remove(first.flow);
            self.flows.forget(first.flow);
        }
    }

    /// Takes over how many seats one flow may hold; tells whether that has changed.
    fn set_flow_seats_max(&mut self) -> bool {
        let most = self.flow_limits.flow_seats_max.map(|share| seats_of(share, self.nominal));
        let most = most.map_or(u64::MAX, |most| u64::try_from(most).unwrap_or(0));
        std::mem::replace(&mut self.flow_seats_max, most) != most
    }

    /// Looks anew at which seats the waiting flows may take.
    #[cold]
    fn judge_standings(&mut self) {
        let waiting: Vec<_> = self.waiting_flows().collect();
        for queue in waiting {
            self.update(queue);
        }
    }

    /// Counts all keys from the virtual time on.
    #[cold]
    fn rebase(&mut self) {
        let by = self.virtual_time;
        self.flows.lower(by);
        for heap in [&mut self.ready, &mut self.held, &mut self.full, &mut self.idle] {
            heap.lower(by);
        }
        self.virtual_time = 0;
        self.last_start = (self.last_start.0.saturating_sub(by), self.last_start.1.saturating_sub(by));
    }
}

impl TurnOrder for PerFlow {
    fn new(now: Instant) -> Self {
        Self {
            limits: None,
            queue_length_limit: 0,
            now,
            flows: FlowTable::new(),
            waiting: Waiting::default(),
            ready: FlowHeap::default(),
            held: FlowHeap::default(),
            full: FlowHeap::default(),
            newcomers: Newcomers::new(),
            flow_limits: FlowLimits::NONE,
            flow_seats_max: u64::MAX,
            nominal: 0,
            idle: FlowHeap::default(),
            crowd: Crowd::default(),
            virtual_time: 0,
            turn: None,
            waiting_count: 0,
            placed: 0,
            estimate: SERVICE_TIME_GUESS.unsigned_abs(),
            last_start: (0, 0),
        }
    }

    fn configure(&mut self, queuing: Option<Queuing>) {
        self.limits = queuing.map(|Queuing { deal, queue_length_limit, .. }| {
            self.queue_length_limit = queue_length_limit;
            let length = u64::try_from(queue_length_limit).unwrap_or(0);
            let of = |queues: usize| u64::try_from(queues).unwrap_or(u64::MAX).saturating_mul(length);
            QueueLimits { level: of(deal.deck()), flow: of(deal.hand()) }
        });
        // Running requests keep the same rules while there are to be no queues.
        if let Some(flow_limits) = queuing.map(|queuing| queuing.flow_limits)
            && flow_limits != self.flow_limits
        {
            self.flow_limits = flow_limits;
            self.newcomers.configure(flow_limits);
            self.set_flow_seats_max();
            self.judge_all();
        }
    }

    fn resize(&mut self, seats: i64) {
        self.nominal = seats;
        self.newcomers.resize(seats);
        if self.set_flow_seats_max() {
            self.judge_standings();
        }
    }

    #[inline]
    fn advance<T>(&mut self, now: Instant, _limit: i64, _requests: &mut Requests<T>) -> Option<bool> {
        self.now = now;
        self.forget_idle();
        if self.virtual_time < VIRTUAL_TIME_MAX {
            return None;
        }
        self.rebase();
        Some(true)
    }

    #[inline]
    fn place(&mut self, flow: Flow<'_>, work: WorkEstimate, is_saturated: bool) -> QueueChoice {
        let Some(limits) = self.limits else { return QueueChoice::Nowhere };
        self.placed += 1;
        let known = self.flows.number_of(flow.hash());
        if !is_saturated && self.waiting_count == 0 {
            return QueueChoice::Queue(self.queue_for(flow, known));
        }
        let waiting = known.map_or(0, |queue| self.flows.get(queue).waiting);
        if u64::from(waiting) >= limits.flow {
            return QueueChoice::Full(known.unwrap_or(NO_QUEUE));
        }
        if u64::try_from(self.waiting_count).unwrap_or(u64::MAX) < limits.level {
            return QueueChoice::Queue(self.queue_for(flow, known));
        }
        let load = match known {
            Some(queue) => self.flows.get(queue).load(work.max_seats()),
            None => active_flow::load(u64::from(work.max_seats()), flow.weight()),
        };
        if self.crowd.is_empty() {
            for queue in self.ready.flows().chain(self.held.flows()).chain(self.full.flows()) {
                self.crowd.add(queue, self.flows.get(queue), &self.waiting);
            }
        }
        match self.crowd.heaviest().filter(|(_, heaviest)| *heaviest > load) {
            Some((heaviest, _)) => {
                let slot = self.flows.get(heaviest).last;
                QueueChoice::Instead { queue: self.queue_for(flow, known), slot }
            }
            None => QueueChoice::Full(known.unwrap_or(NO_QUEUE)),
        }
    }

    #[inline]
    fn would_choose(&mut self, queue: u32, work: WorkEstimate, room: Room) -> bool {
        let seats = work.max_seats();
        self.kept_from_queue(queue, seats).is_some_and(|kept| room.leaves(seats, kept))
    }

    #[inline]
    fn pass(&mut self, queue: u32, _work: WorkEstimate, narrowed: WorkEstimate) {
        self.lift(queue);
        let flow = self.flows.get_mut(queue);
        let (key, before) = (flow.key(self.now), flow.held());
        flow.start(self.now, narrowed.max_seats());
        self.judge(queue, before);
        self.virtual_time = self.virtual_time.max(key);
        self.last_start = (self.virtual_time, key);
    }

    #[inline]
    fn enqueue(&mut self, queue: u32, _work: WorkEstimate) -> SeatSeconds {
        if self.flows.get(queue).waiting == 0 {
            self.lift(queue);
        }
        SeatSeconds::ZERO
    }

    #[inline]
    fn push<T>(&mut self, queue: u32, slot: u32, requests: &mut Requests<T>) {
        let seats = requests.slot(slot).map_or(0, |request| request.work.max_seats());
        let flow = self.flows.get_mut(queue);
        self.waiting.push_back(flow, slot, seats);
        self.waiting_count += 1;
        if flow.waiting == 1 {
            self.update(queue);
        } else {
            self.crowd.update(queue, flow, &self.waiting);
        }
    }

    #[inline]
    fn next(&mut self, _now: Instant, room: Room) -> Option<Next> {
        let (queue, kept) = match self.turn {
            Some(queue) => (queue, 0),
            None => self.choose(room)?,
        };
        let flow = self.flows.get(queue);
        (flow.waiting > 0).then_some(Next { queue, slot: flow.first, max_seats: flow.first_seats, kept })
    }

    fn blocked(&mut self, next: Next) {
        self.turn = Some(next.queue);
    }

    #[inline]
    fn start<T>(&mut self, next: Next, narrowed: WorkEstimate, requests: &mut Requests<T>) {
        self.turn = None;
        self.last_start = (self.virtual_time, self.flows.get(next.queue).key(self.now));
        self.take_out(next.queue, next.slot);
        let flow = self.flows.get_mut(next.queue);
        let before = flow.held();
        flow.start(self.now, narrowed.max_seats());
        self.judge(next.queue, before);
        self.update(next.queue);
        self.crowd.end_below(self.waiting_count, self.limits.map_or(0, |limits| limits.level));
        self.fetch_next(requests);
    }

    fn cancel<T>(&mut self, slot: u32, requests: &mut Requests<T>) -> bool {
        let Some(request) = requests.slot(slot) else { return false };
        let queue = request.queue;
        let flow = self.flows.get(queue);
        let is_head = flow.first == slot;
        // A request behind a wide one may need fewer seats.
        let has_to_leave_seats = is_head && flow.standing != FlowStanding::Open;
        let ends_turn = is_head && self.turn == Some(queue);
        if ends_turn {
            self.turn = None;
        }
        self.take_out(queue, slot);
        self.update(queue);
        self.crowd.end_below(self.waiting_count, self.limits.map_or(0, |limits| limits.level));
        self.forget_if_idle(queue);
        ends_turn || has_to_leave_seats
    }

    /// A request that lingers is charged until it gives its seats back.
    #[inline]
    fn finish(&mut self, _queue: u32, _finished: Finished) {}

    fn resize_request(&mut self, queue: u32, resized: Resized) {
        let Resized { before, after, since, now } = resized;
        let flow = self.flows.get_mut(queue);
        let held = flow.held();
        flow.resize(since, now, before.max_seats(), after.max_seats());
        // The pace of the flow stays: other seats say nothing about how long they are held.
        self.newcomers.recount(held, flow.held());
        self.update(queue);
    }

    fn charge(&mut self, queue: u32, seat_time: Nanos) {
        let flow = self.flows.get_mut(queue);
        flow.add_charge(seat_time);
        // A flow of which nothing waits is in no order.
        if flow.waiting > 0 {
            self.update(queue);
        }
    }

    #[inline]
    fn release(&mut self, queue: u32, released: Finished) {
        let Finished { work, run, now, .. } = released;
        let flow = self.flows.get_mut(queue);
        let before = flow.held();
        let used = flow.end(run, now, work.max_seats());
        self.estimate = learnt(self.estimate, used);
        self.judge(queue, before);
        self.newcomers.ended(u64::try_from(now - run.started).unwrap_or(0));
        let flow = self.flows.get(queue);
        if flow.waiting == 0 {
            self.forget_if_idle(queue);
        } else if self.standing(flow, flow.first_seats) == flow.standing {
            let (standing, key) = (flow.standing, flow.key(self.now));
            self.heap_of(standing).set_key(queue, key);
        } else {
            self.update(queue);
        }
    }
}

/// The flow with the least key at present in a heap whose keys may be too low.
#[inline]
fn least_of(heap: &mut FlowHeap, flows: &FlowTable, now: Instant) -> Option<HeapEntry> {
    loop {
        let first = heap.first()?;
        let key = flows.get(first.flow).key(now);
        if key > first.key {
            heap.set_key(first.flow, key);
            if heap.first().is_none_or(|now_first| now_first.flow != first.flow) {
                continue;
            }
        }
        return heap.first();
    }
}
