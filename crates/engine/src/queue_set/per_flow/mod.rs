//! Queues per flow: each flow has a queue of its own, and the flow that has used the least seat-time by its weight is next
//! (chapter 2 of `docs/spec/beyond.md`).
//!
//! What a flow has used is known at any time: what its ended requests took, and for those that run the time that they have
//! run, or what they are expected to take if that is more. So costs need not be known before, and a burst of one flow takes
//! turns with the others.
//!
//! `active_flow` has the arithmetic, `flow_table` and `index` the flows, `waiting` their requests, `heap` their order, and `crowd`
//! finds who has to give way when the level is full.
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
mod view;
mod waiting;

use std::hint::black_box;
use std::marker::PhantomData;

use active_flow::{ActiveFlow, learnt};
use crowd::Crowd;
use flow_table::FlowTable;
use heap::FlowHeap;
use waiting::Waiting;

use super::requests::{NO_QUEUE, Requests};
use super::{Finished, Next, Place, Queuing, SERVICE_TIME_GUESS, TurnOrder};
use crate::time::Instant;
use crate::{Flow, WorkEstimate};

/// A queue for each flow, and the flow that has used the least is next.
///
/// The key of a queue is the number of its flow. `K` is what the queue set keeps with a waiting request; nothing is needed
/// here.
#[derive(Debug)]
pub struct PerFlow<K = ()> {
    /// `None` while there are to be no queues.
    limits: Option<Limits>,
    queue_length_limit: i64,
    now: Instant,
    flows: FlowTable,
    waiting: Waiting,
    /// The flows that wait, by their keys as of some time: a key only grows until the next event of its flow (PF-4).
    ready: FlowHeap,
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
    ticket: PhantomData<K>,
}

/// How many requests may wait (PF-7).
#[derive(Debug, Clone, Copy)]
struct Limits {
    level: u64,
    flow: u64,
}

/// So many idle flows are remembered, or as many as there are others if that is more. Who uses a name once and never again
/// would otherwise make the level remember all of them while others wait.
const IDLE_FLOWS_MAX: usize = 256;
/// With fewer flows than this, all of them are near anyway.
const FAR: usize = 1024;
/// When the virtual time is beyond this, all keys are lowered by it (PF-9): after four years of seat-time for a weight of 1.
const VIRTUAL_TIME_MAX: i64 = 1 << 61;

// === impl PerFlow ===

impl<K: Copy + Default + std::fmt::Debug> PerFlow<K> {
    /// The queue of a flow, whether it is full or not.
    pub(super) fn queue_of(&mut self, flow: Flow<'_>) -> u32 {
        let known = self.flows.number_of(flow.hash());
        self.queue_for(flow, known)
    }

    /// The queue of a flow that has that number already, if it is known.
    #[inline]
    fn queue_for(&mut self, flow: Flow<'_>, known: Option<u32>) -> u32 {
        let Some(queue) = known else {
            let new = ActiveFlow::new(flow.weight(), self.estimate, self.virtual_time);
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

    /// The waiting flow with the least key at present. Brings the virtual time up to it (PF-4).
    #[inline]
    fn least(&mut self) -> Option<u32> {
        loop {
            let first = self.ready.first()?;
            let key = self.flows.get(first.flow).key(self.now);
            if key > first.key {
                self.ready.set_key(first.flow, key);
                if self.ready.first().is_none_or(|now_first| now_first.flow != first.flow) {
                    continue;
                }
            }
            self.virtual_time = self.virtual_time.max(key);
            return Some(first.flow);
        }
    }

    /// A request is about to join a flow of which none waits: the flow starts from the virtual time at least (PF-5).
    ///
    /// That includes a flow of which something runs. One that holds a seat for an hour, and uses less than its share by that,
    /// would otherwise save up the rest.
    #[inline]
    fn lift(&mut self, queue: u32) {
        self.least();
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
        if flow.waiting == 0 {
            self.ready.remove(queue);
        } else {
            self.ready.set(queue, flow.key(self.now), self.waiting.arrival_of(flow.first));
        }
        self.crowd.update(queue, flow, &self.waiting);
    }

    /// A request has left the queue of a flow.
    #[inline]
    fn take_out(&mut self, queue: u32, slot: u32) {
        self.waiting.remove(self.flows.get_mut(queue), slot);
        self.waiting_count -= 1;
    }

    /// Has the request that is probably next, and the flow that is probably next after it, brought near while others are
    /// busy: among many flows, both are far away in memory. The next flow has been fetched at the turn before.
    #[inline]
    fn fetch_next<T>(&self, requests: &Requests<T, K>) {
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

    /// Forgets the flow if nothing of it is left and nobody would notice (PF-6).
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

    /// Forgets idle flows that have used no more than the virtual time; all of them if nobody waits, since then everybody has
    /// got what they wanted; and those that have used the least if there are too many.
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

    /// Counts all keys from the virtual time on.
    #[cold]
    fn rebase(&mut self) {
        let by = self.virtual_time;
        self.flows.lower(by);
        self.ready.lower(by);
        self.idle.lower(by);
        self.virtual_time = 0;
        self.last_start = (self.last_start.0.saturating_sub(by), self.last_start.1.saturating_sub(by));
    }
}

impl<K: Copy + Default + std::fmt::Debug> TurnOrder for PerFlow<K> {
    fn new(now: Instant) -> Self {
        Self {
            limits: None,
            queue_length_limit: 0,
            now,
            flows: FlowTable::new(),
            waiting: Waiting::default(),
            ready: FlowHeap::default(),
            idle: FlowHeap::default(),
            crowd: Crowd::default(),
            virtual_time: 0,
            turn: None,
            waiting_count: 0,
            placed: 0,
            estimate: SERVICE_TIME_GUESS.unsigned_abs(),
            last_start: (0, 0),
            ticket: PhantomData,
        }
    }

    fn configure<T>(&mut self, _now: Instant, queuing: Option<Queuing>, _requests: &mut Requests<T, K>) {
        self.limits = queuing.map(|Queuing { deal, queue_length_limit, .. }| {
            self.queue_length_limit = queue_length_limit;
            let length = u64::try_from(queue_length_limit).unwrap_or(0);
            let of = |queues: usize| u64::try_from(queues).unwrap_or(u64::MAX).saturating_mul(length);
            Limits { level: of(deal.deck()), flow: of(deal.hand()) }
        });
    }

    #[inline]
    fn advance<T>(&mut self, now: Instant, _limit: i64, _requests: &mut Requests<T, K>) -> Option<bool> {
        self.now = now;
        self.forget_idle();
        if self.virtual_time < VIRTUAL_TIME_MAX {
            return None;
        }
        self.rebase();
        Some(true)
    }

    #[inline]
    fn place(&mut self, flow: Flow<'_>, work: WorkEstimate, is_saturated: bool) -> Place {
        let Some(limits) = self.limits else { return Place::Nowhere };
        self.placed += 1;
        let known = self.flows.number_of(flow.hash());
        if !is_saturated && self.waiting_count == 0 {
            return Place::Queue(self.queue_for(flow, known));
        }
        let waiting = known.map_or(0, |queue| self.flows.get(queue).waiting);
        if u64::from(waiting) >= limits.flow {
            return Place::Full(known.unwrap_or(NO_QUEUE));
        }
        if u64::try_from(self.waiting_count).unwrap_or(u64::MAX) < limits.level {
            return Place::Queue(self.queue_for(flow, known));
        }
        let load = match known {
            Some(queue) => self.flows.get(queue).load(work.max_seats()),
            None => active_flow::load(u64::from(work.max_seats()), flow.weight()),
        };
        if self.crowd.is_empty() {
            for queue in self.ready.flows() {
                self.crowd.add(queue, self.flows.get(queue), &self.waiting);
            }
        }
        match self.crowd.heaviest().filter(|(_, heaviest)| *heaviest > load) {
            Some((heaviest, _)) => {
                let slot = self.flows.get(heaviest).last;
                Place::Instead { queue: self.queue_for(flow, known), slot }
            }
            None => Place::Full(known.unwrap_or(NO_QUEUE)),
        }
    }

    #[inline]
    fn would_choose(&self, _queue: u32, _work: WorkEstimate) -> bool {
        true
    }

    #[inline]
    fn pass(&mut self, queue: u32, _work: WorkEstimate, narrowed: WorkEstimate) {
        self.lift(queue);
        let flow = self.flows.get_mut(queue);
        let key = flow.key(self.now);
        flow.start(self.now, narrowed.max_seats());
        self.virtual_time = self.virtual_time.max(key);
        self.last_start = (self.virtual_time, key);
    }

    #[inline]
    fn enqueue(&mut self, queue: u32, _work: WorkEstimate) -> K {
        if self.flows.get(queue).waiting == 0 {
            self.lift(queue);
        }
        K::default()
    }

    #[inline]
    fn push<T>(&mut self, queue: u32, slot: u32, requests: &mut Requests<T, K>) {
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
    fn next(&mut self, _now: Instant) -> Option<Next> {
        let queue = match self.turn {
            Some(queue) => queue,
            None => self.least()?,
        };
        let flow = self.flows.get(queue);
        (flow.waiting > 0).then_some(Next { queue, slot: flow.first, max_seats: flow.first_seats })
    }

    fn blocked(&mut self, next: Next) {
        self.turn = Some(next.queue);
    }

    #[inline]
    fn start<T>(&mut self, next: Next, narrowed: WorkEstimate, requests: &mut Requests<T, K>) {
        self.turn = None;
        self.last_start = (self.virtual_time, self.flows.get(next.queue).key(self.now));
        self.take_out(next.queue, next.slot);
        self.flows.get_mut(next.queue).start(self.now, narrowed.max_seats());
        self.update(next.queue);
        self.crowd.end_below(self.waiting_count, self.limits.map_or(0, |limits| limits.level));
        self.fetch_next(requests);
    }

    fn cancel<T>(&mut self, slot: u32, requests: &mut Requests<T, K>) -> bool {
        let Some(request) = requests.slot(slot) else { return false };
        let queue = request.queue;
        let is_head = self.flows.get(queue).first == slot;
        let ends_turn = is_head && self.turn == Some(queue);
        if ends_turn {
            self.turn = None;
        }
        self.take_out(queue, slot);
        self.update(queue);
        self.crowd.end_below(self.waiting_count, self.limits.map_or(0, |limits| limits.level));
        self.forget_if_idle(queue);
        ends_turn
    }

    /// A request that lingers is charged until it gives its seats back.
    #[inline]
    fn finish(&mut self, _queue: u32, _finished: Finished) {}

    #[inline]
    fn release(&mut self, queue: u32, released: Finished) {
        let Finished { work, started, now, .. } = released;
        let used = self.flows.get_mut(queue).end(started, now, work.max_seats());
        self.estimate = learnt(self.estimate, used);
        let flow = self.flows.get(queue);
        if flow.waiting > 0 {
            self.ready.set_key(queue, flow.key(self.now));
        } else {
            self.forget_if_idle(queue);
        }
    }
}
