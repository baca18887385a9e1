//! The discipline of Kubernetes: a fixed number of queues, of which some are dealt to each flow, served in the order in which
//! an imaginary server that serves all of them at once would finish their requests (section 5 of the specification).
//!
//! `placement` chooses a queue for a request, `ready` the queue that is next, and `virtual_time` says what a turn costs.
//! `numbers` finds queues by their numbers, `queues` adds and removes queues, and `view` shows them.

mod line;
mod numbers;
mod placement;
mod queue;
mod queues;
mod ready;
mod view;
mod virtual_time;

pub use virtual_time::SERVICE_TIME_GUESS;

use numbers::{AllQueues, Numbers, TABLE_MAX};
use placement::Placement;
use queue::{DETACHED, Queue};
use virtual_time::{Meter, total_work, wind_back};

use super::requests::Requests;
use super::turn_order::{Finished, Next, QueueChoice, Resized, TurnOrder};
use super::{Queuing, Room};
use crate::time::{Instant, Nanos};
use crate::{Flow, SeatSeconds, WorkEstimate};

/// Fair queuing with shuffle sharding, decision for decision as in Kubernetes.
///
/// The key of a queue is its slot. A slot outlives its queue's place among the queues while requests of it linger.
#[derive(Debug)]
pub(super) struct ShuffleSharding {
    /// How many queues there are to be.
    queues_wanted: usize,
    /// Kept while there are no queues (FQ-37).
    queue_length_limit: i64,
    meter: Meter,
    queues: Vec<Queue>,
    free_queues: Vec<u32>,
    numbers: Numbers,
    /// Up to so many queues there is a table of all of them.
    table_max: usize,
    placement: Placement,
    /// The number of the queue that was last dispatched from; -1 once that queue was the first and is gone (FQ-36).
    robin: i64,
}

// === impl ShuffleSharding ===

impl ShuffleSharding {
    /// Takes over what changed the head or the reading of a queue.
    #[inline]
    fn update_ready(&mut self, slot: u32) {
        let queue = &self.queues[slot as usize];
        self.numbers.set_finish(queue.index, queue.finish());
    }

    /// Takes over what changed the reading of a queue while its requests run.
    fn take_over_reading(&mut self, slot: u32) {
        let queue = &mut self.queues[slot as usize];
        queue.forget_old_claims();
        if queue.waiting > 0 {
            self.update_ready(slot);
        }
    }

    /// Counts the seats of a request that starts, and charges its queue (FQ-23, steps 6 and 7).
    #[inline]
    fn charge_for_start(&mut self, slot: u32, work: WorkEstimate, total_work: SeatSeconds) {
        let seats = i64::from(work.max_seats());
        let queue = &mut self.queues[slot as usize];
        queue.executing += 1;
        queue.seats_in_use += seats;
        queue.reading.charge(&mut self.meter, total_work);
        self.meter.seats_requested += seats;
    }

    /// Winds back the meter and all that is read off it (FQ-13).
    #[cold]
    fn advance_epoch<T>(&mut self, requests: &mut Requests<T>) -> bool {
        let mut is_clean = self.meter.wind_back();
        for queue in self.queues.iter_mut().filter(|queue| queue.index != DETACHED) {
            if queue.is_active() {
                is_clean &= wind_back(&mut queue.reading.next_r);
                queue.line.for_each(requests, |arrival_r| is_clean &= wind_back(arrival_r));
            } else {
                queue.reading.next_r = SeatSeconds::ZERO;
            }
        }
        self.rebuild_ready();
        is_clean
    }
}

impl TurnOrder for ShuffleSharding {
    fn new(now: Instant) -> Self {
        Self {
            queues_wanted: 0,
            queue_length_limit: 0,
            meter: Meter::new(now),
            queues: Vec::new(),
            free_queues: Vec::new(),
            numbers: Numbers::All(AllQueues::new()),
            table_max: TABLE_MAX,
            placement: Placement::new(),
            robin: 0,
        }
    }

    fn configure(&mut self, queuing: Option<Queuing>) {
        self.queues_wanted = queuing.map_or(0, |queuing| queuing.deal.deck());
        if let Some(queuing) = queuing {
            self.queue_length_limit = queuing.queue_length_limit;
        }
        self.grow(self.queues_wanted);
        self.placement.deal(queuing.map(|queuing| queuing.deal));
    }

    #[inline]
    fn advance<T>(&mut self, now: Instant, limit: i64, requests: &mut Requests<T>) -> Option<bool> {
        if self.meter.advance(now, limit) { Some(self.advance_epoch(requests)) } else { None }
    }

    #[inline]
    fn place(&mut self, flow: Flow<'_>, _work: WorkEstimate, is_saturated: bool) -> QueueChoice {
        let chosen = match &self.numbers {
            Numbers::All(all) => self.placement.choose(flow.hash(), |number| all.waiting_work[number]),
            Numbers::Used(used) => self.placement.choose(flow.hash(), |number| used.waiting_work(number)),
        };
        let Some(number) = chosen else { return QueueChoice::Nowhere };
        let slot = self.slot_for(number);
        let queue = &mut self.queues[slot as usize];
        // The length counts only while no seat is free (FQ-18, KW-12).
        if is_saturated && i64::from(queue.waiting) >= self.queue_length_limit {
            if queue.forget_old_claims() {
                self.update_ready(slot);
            }
            return QueueChoice::Full(slot);
        }
        QueueChoice::Queue(slot)
    }

    /// A request that would finish at the very end of the meter is never chosen (FQ-23).
    #[inline]
    fn would_choose(&mut self, queue: u32, work: WorkEstimate, _room: Room) -> bool {
        let (queue, r) = (&self.queues[queue as usize], self.meter.r());
        let next_r = if queue.is_active() { queue.reading.next_r.max(r) } else { r };
        next_r + total_work(work) != SeatSeconds::MAX
    }

    #[inline]
    fn pass(&mut self, slot: u32, work: WorkEstimate, narrowed: WorkEstimate) {
        let queue = &mut self.queues[slot as usize];
        queue.wake(&mut self.meter);
        queue.reading.next_r = queue.reading.next_r.max(self.meter.r());
        self.robin = i64::from(queue.index);
        self.charge_for_start(slot, narrowed, total_work(work));
    }

    #[inline]
    fn enqueue(&mut self, slot: u32, work: WorkEstimate) -> SeatSeconds {
        let queue = &mut self.queues[slot as usize];
        queue.wake(&mut self.meter);
        let seats = i64::from(work.max_seats());
        queue.seats_waiting += seats;
        queue.initial_seats_waiting += i64::from(work.initial_seats);
        self.numbers.change_waiting_work(queue.index, |waiting| *waiting += total_work(work));
        self.meter.seats_requested += seats;
        self.meter.r()
    }

    #[inline]
    fn push<T>(&mut self, queue: u32, slot: u32, requests: &mut Requests<T>) {
        let found = &mut self.queues[queue as usize];
        let is_head = found.waiting == 0;
        found.line.push_back(requests, slot);
        found.waiting += 1;
        // A request behind others hardly ever changes when the queue would be served.
        if found.forget_old_claims() || is_head {
            self.update_ready(queue);
        }
    }

    #[inline]
    fn next(&mut self, _now: Instant, _room: Room) -> Option<Next> {
        let queue = self.numbers.first(usize::try_from(self.robin + 1).unwrap_or(0))?;
        let front = self.queues[queue as usize].line.front()?;
        Some(Next { queue, slot: front.slot, max_seats: front.max_seats, kept: 0 })
    }

    fn blocked(&mut self, _next: Next) {
        if self.robin < 0 {
            self.robin = i64::try_from(self.numbers.count()).unwrap_or(i64::MAX) - 1;
        }
    }

    #[inline]
    fn start<T>(&mut self, next: Next, narrowed: WorkEstimate, requests: &mut Requests<T>) {
        let seats = i64::from(next.max_seats);
        let queue = &mut self.queues[next.queue as usize];
        let total_work = queue.line.front().map_or(SeatSeconds::ZERO, |front| front.total_work);
        queue.line.remove(requests, next.slot);
        queue.waiting -= 1;
        queue.seats_waiting -= seats;
        queue.initial_seats_waiting -= i64::from(narrowed.initial_seats);
        self.numbers.change_waiting_work(queue.index, |waiting| *waiting -= total_work);
        self.meter.seats_requested -= seats;
        self.robin = i64::from(queue.index);
        self.charge_for_start(next.queue, narrowed, total_work);
        self.queues[next.queue as usize].forget_old_claims();
        self.update_ready(next.queue);
    }

    fn cancel<T>(&mut self, slot: u32, requests: &mut Requests<T>) -> bool {
        let Some(request) = requests.slot(slot) else { return false };
        let (key, work) = (request.queue, request.work);
        let queue = &mut self.queues[key as usize];
        queue.line.remove(requests, slot);
        queue.waiting -= 1;
        queue.seats_waiting -= i64::from(work.max_seats());
        queue.initial_seats_waiting -= i64::from(work.initial_seats);
        self.numbers.change_waiting_work(queue.index, |waiting| *waiting -= total_work(work));
        self.meter.seats_requested -= i64::from(work.max_seats());
        queue.forget_old_claims();
        if !queue.is_active() {
            self.meter.active_queues -= 1;
        }
        self.update_ready(key);
        self.forget_if_unused(key);
        false
    }

    #[inline]
    fn finish(&mut self, slot: u32, finished: Finished) {
        let queue = &mut self.queues[slot as usize];
        queue.executing -= 1;
        queue.lingering += u32::from(finished.lingers);
        queue.reading.correct(finished);
        queue.forget_old_claims();
        if !queue.is_active() {
            self.meter.active_queues -= 1;
        } else if queue.waiting > 0 {
            self.update_ready(slot);
        }
    }

    fn resize_request(&mut self, slot: u32, resized: Resized) {
        let Resized { before, after, since, now } = resized;
        let more = i64::from(after.max_seats()) - i64::from(before.max_seats());
        let queue = &mut self.queues[slot as usize];
        queue.seats_in_use += more;
        queue.reading.settle(before, now - since);
        queue.reading.charge_seats(after);
        self.meter.seats_requested += more;
        self.take_over_reading(slot);
    }

    fn charge(&mut self, slot: u32, seat_time: Nanos) {
        self.queues[slot as usize].reading.next_r += SeatSeconds::of(1.0, seat_time);
        self.take_over_reading(slot);
    }

    #[inline]
    fn release(&mut self, slot: u32, released: Finished) {
        let seats = i64::from(released.work.max_seats());
        let queue = &mut self.queues[slot as usize];
        queue.lingering -= u32::from(released.lingers);
        queue.seats_in_use -= seats;
        if queue.index != DETACHED {
            self.meter.seats_requested -= seats;
        }
        self.remove_if_surplus(slot);
    }
}
