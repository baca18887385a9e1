//! A queue set as section 5 of the specification has it, word for word: what the indexed one is held against.
//!
//! Everything is a scan over all queues and over plain lists. The one departure is KW-15: a queue that was removed stays
//! removed, and seats freed by its last requests leave the other queues alone.

mod dispatch;
mod state;

pub(crate) use state::QueueSetState;

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::borrowing::DemandIntegrator;
use evenkeel_engine::deal::Dealer;
use evenkeel_engine::queue_set::{Counters, Mode, Phase, QueueSetConfig, Rejection};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos};

use crate::queue_set_events::{Outcome, SideEffects};

/// FQ-5
const G: Nanos = 3 * MILLISECOND;
/// FQ-13
const R_DECREMENT: u64 = u64::MAX / 2;
const HIGH_R: u64 = R_DECREMENT + R_DECREMENT / 2;

/// FQ-7. Requests go by the order in which they arrived, those that were rejected included.
pub(crate) struct PlainQueueSet {
    desired_queues: i64,
    is_closed: bool,
    queue_length_limit: i64,
    cl: i64,
    dealer: Option<Dealer>,
    queues: Vec<Queue>,
    r: u64,
    last_time: Instant,
    robin: i64,
    enqueues: u64,
    waiting: usize,
    executing: usize,
    seats_in_use: i64,
    seats_waiting: i64,
    requests: Vec<Request>,
    queues_made: usize,
    counters: Counters,
    demand: DemandIntegrator,
    told: SideEffects,
}

/// FQ-8
struct Queue {
    /// Never given to another queue.
    name: usize,
    fifo: Vec<usize>,
    executing: Vec<usize>,
    next_r: u64,
    seats_in_use: i64,
}

/// FQ-9
struct Request {
    work: WorkEstimate,
    final_work: u64,
    total_work: u64,
    arrival_r: u64,
    start: Instant,
    /// Since when it has its present seats.
    resized: Instant,
    /// The name of its queue.
    queue: Option<usize>,
    /// None once it has ended.
    phase: Option<Phase>,
}

impl PlainQueueSet {
    pub(crate) fn new(config: QueueSetConfig, now: Instant) -> Self {
        let mut set = Self {
            desired_queues: 0,
            is_closed: false,
            queue_length_limit: 0,
            cl: 0,
            dealer: None,
            queues: Vec::new(),
            r: 0,
            last_time: now,
            robin: 0,
            enqueues: 0,
            waiting: 0,
            executing: 0,
            seats_in_use: 0,
            seats_waiting: 0,
            requests: Vec::new(),
            queues_made: 0,
            counters: Counters::default(),
            demand: DemandIntegrator::new(now),
            told: SideEffects::default(),
        };
        set.install(config);
        set
    }

    /// 5.5 and 5.6
    pub(crate) fn arrive(&mut self, now: Instant, hash: u64, work: WorkEstimate) -> Outcome {
        self.synchronise(now);
        let number = self.requests.len();
        let final_work = product(f64::from(work.final_seats), work.additional_latency);
        let total_work = product(f64::from(work.initial_seats), G).wrapping_add(final_work);
        let (arrival_r, phase) = (self.r, None);
        self.requests.push(Request {
            work,
            final_work,
            total_work,
            arrival_r,
            start: now,
            resized: now,
            queue: None,
            phase,
        });
        match self.dealer.as_ref().map(|dealer| dealer.deal(hash)) {
            None => self.start_without_queue(now, number),
            Some(hand) => self.enqueue(now, number, hand.cards()),
        }
    }

    /// FQ-30, FQ-31
    pub(crate) fn finish(&mut self, now: Instant, number: usize) -> Outcome {
        if self.requests[number].phase != Some(Phase::Executing) {
            return Outcome::Nothing;
        }
        self.synchronise(now);
        self.executing -= 1;
        let request = &self.requests[number];
        if let Some(index) = self.index_of_queue(number) {
            let too_much = product(f64::from(request.work.initial_seats), G.saturating_sub(now - request.resized));
            let queue = &mut self.queues[index];
            queue.executing.retain(|&other| other != number);
            queue.next_r = queue.next_r.wrapping_sub(too_much);
            self.bound(index);
        }
        let latency = self.requests[number].work.additional_latency;
        let outcome = if latency <= 0 {
            self.give_seats_back(now, number);
            Outcome::Ended
        } else {
            self.requests[number].phase = Some(Phase::Lingering);
            Outcome::Lingering { until: now + latency }
        };
        self.dispatch(now);
        outcome
    }

    /// FQ-32
    pub(crate) fn release(&mut self, now: Instant, number: usize) -> Outcome {
        if self.requests[number].phase != Some(Phase::Lingering) {
            return Outcome::Nothing;
        }
        self.synchronise(now);
        self.give_seats_back(now, number);
        self.dispatch(now);
        Outcome::Ended
    }

    /// FQ-28
    pub(crate) fn cancel(&mut self, now: Instant, number: usize) -> Outcome {
        if self.requests[number].phase != Some(Phase::Waiting) {
            return Outcome::Nothing;
        }
        self.synchronise(now);
        let index = self.index_of_queue(number).expect("a queue with a waiting request is never removed");
        self.queues[index].fifo.retain(|&other| other != number);
        self.requests[number].phase = None;
        self.waiting -= 1;
        self.seats_waiting -= i64::from(self.requests[number].work.max_seats());
        self.counters.rejected += 1;
        self.counters.cancelled += 1;
        self.signal_demand(now);
        self.bound(index);
        Outcome::Ended
    }

    /// CO-4: a request is charged more, or less.
    pub(crate) fn charge(&mut self, now: Instant, number: usize, seat_time: Nanos) -> Outcome {
        if self.requests[number].phase != Some(Phase::Executing) {
            return Outcome::Nothing;
        }
        self.synchronise(now);
        if let Some(index) = self.index_of_queue(number) {
            self.queues[index].next_r = self.queues[index].next_r.wrapping_add(product(1.0, seat_time));
            self.bound(index);
        }
        Outcome::Changed
    }

    /// CO-4: what a request used on the seats that it had is settled, and the rest is charged like a request that starts.
    pub(crate) fn set_seats(&mut self, now: Instant, number: usize, seats: u32) -> Outcome {
        let request = &self.requests[number];
        let (before, resized) = (request.work, request.resized);
        if request.phase != Some(Phase::Executing) || before.max_seats() == 0 {
            return Outcome::Nothing;
        }
        self.synchronise(now);
        let final_seats = if before.additional_latency > 0 { seats } else { 0 };
        let after = WorkEstimate { initial_seats: seats, final_seats, ..before };
        let more = i64::from(seats) - i64::from(before.max_seats());
        (self.requests[number].work, self.requests[number].resized) = (after, now);
        self.seats_in_use += more;
        self.signal_demand(now);
        if let Some(index) = self.index_of_queue(number) {
            let queue = &mut self.queues[index];
            queue.seats_in_use += more;
            let too_much = product(f64::from(before.initial_seats), G.saturating_sub(now - resized));
            queue.next_r = queue.next_r.wrapping_sub(too_much).wrapping_add(product(f64::from(seats), G));
            self.bound(index);
        }
        self.dispatch(now);
        Outcome::Changed
    }

    /// FQ-37
    pub(crate) fn configure(&mut self, now: Instant, config: QueueSetConfig) -> Outcome {
        self.synchronise(now);
        self.install(config);
        self.dispatch(now);
        Outcome::Configured
    }

    /// What has been brought about since this was last asked.
    pub(crate) fn told(&mut self) -> SideEffects {
        std::mem::take(&mut self.told)
    }

    fn install(&mut self, config: QueueSetConfig) {
        self.cl = config.concurrency_limit.max(0);
        self.is_closed = config.mode == Mode::Closed;
        (self.desired_queues, self.dealer) = match config.mode {
            Mode::Exempt => (-1, None),
            Mode::Reject | Mode::Closed => (0, None),
            Mode::Queue(queuing) => {
                self.queue_length_limit = queuing.queue_length_limit;
                (i64::try_from(queuing.deal.deck()).expect("a small number"), Some(Dealer::from(queuing.deal)))
            }
        };
        // FQ-35
        while self.queue_count() < self.desired_queues {
            let name = self.queues_made;
            self.queues_made += 1;
            self.queues.push(Queue { name, fifo: Vec::new(), executing: Vec::new(), next_r: 0, seats_in_use: 0 });
        }
    }

    /// FQ-11, FQ-12
    #[expect(clippy::cast_precision_loss, reason = "FQ-11 asks for binary64")]
    fn synchronise(&mut self, now: Instant) {
        let requested: i64 = self.queues.iter().map(|queue| queue.seats_in_use + self.fifo_max_seats(queue)).sum();
        let active = self.queues.iter().filter(|queue| queue.is_active()).count();
        let rate = if active == 0 { 0.0 } else { (requested as f64).min(self.cl as f64) / active as f64 };
        self.r = self.r.wrapping_add(product(rate, now - self.last_time));
        self.last_time = now;
        if self.r >= HIGH_R {
            self.advance_epoch();
        }
    }

    /// FQ-13
    fn advance_epoch(&mut self) {
        let mut success = true;
        let mut wind_back = |reading: &mut u64| {
            let (lower, wrapped) = reading.overflowing_sub(R_DECREMENT);
            *reading = lower;
            success &= !wrapped;
        };
        wind_back(&mut self.r);
        for queue in &mut self.queues {
            if queue.is_active() {
                wind_back(&mut queue.next_r);
                queue.fifo.iter().for_each(|&number| wind_back(&mut self.requests[number].arrival_r));
            } else {
                queue.next_r = 0;
            }
        }
        self.told.epochs.push(success);
    }

    /// FQ-14
    fn start_without_queue(&mut self, now: Instant, number: usize) -> Outcome {
        let seats = self.requests[number].work.max_seats();
        if self.is_closed || !self.accommodates(seats) {
            self.counters.rejected += 1;
            return Outcome::Rejected { reason: Rejection::ConcurrencyLimit, queue: None };
        }
        self.start(number);
        self.signal_demand(now);
        Outcome::Started { queue: None }
    }

    /// FQ-15 to FQ-19
    fn enqueue(&mut self, now: Instant, number: usize, hand: &[u32]) -> Outcome {
        let offset = usize::try_from(self.enqueues % hand.len() as u64).expect("a small number");
        self.enqueues += 1;
        let (mut index, mut least) = (hand[offset] as usize, u64::MAX);
        for step in 0..hand.len() {
            let card = hand[(offset + step) % hand.len()] as usize;
            let work = self.fifo_work(&self.queues[card]);
            if work < least {
                (index, least) = (card, work);
            }
        }
        let length = i64::try_from(self.queues[index].fifo.len()).expect("a small number");
        if self.seats_in_use >= self.cl && length >= self.queue_length_limit {
            self.counters.rejected += 1;
            self.bound(index);
            return Outcome::Rejected { reason: Rejection::QueueFull, queue: Some(index) };
        }
        let (r, queue, request) = (self.r, &mut self.queues[index], &mut self.requests[number]);
        if !queue.is_active() {
            queue.next_r = r;
        }
        queue.fifo.push(number);
        request.queue = Some(queue.name);
        request.phase = Some(Phase::Waiting);
        self.waiting += 1;
        self.seats_waiting += i64::from(request.work.max_seats());
        self.signal_demand(now);
        self.bound(index);
        self.dispatch(now);
        match self.requests[number].phase {
            Some(Phase::Executing) => Outcome::Started { queue: Some(index) },
            _ => Outcome::Waiting { queue: index },
        }
    }

    /// FQ-39
    fn signal_demand(&mut self, now: Instant) {
        self.demand.set(now, self.seats_in_use + self.seats_waiting);
    }

    fn queue_count(&self) -> i64 {
        i64::try_from(self.queues.len()).expect("a small number")
    }

    fn index_of_queue(&self, number: usize) -> Option<usize> {
        let name = self.requests[number].queue?;
        self.queues.iter().position(|queue| queue.name == name)
    }

    fn fifo_max_seats(&self, queue: &Queue) -> i64 {
        queue.fifo.iter().map(|&number| i64::from(self.requests[number].work.max_seats())).sum()
    }

    fn fifo_work(&self, queue: &Queue) -> u64 {
        queue.fifo.iter().fold(0, |sum, &number| sum.wrapping_add(self.requests[number].total_work))
    }
}

impl Queue {
    fn is_active(&self) -> bool {
        !self.fifo.is_empty() || !self.executing.is_empty()
    }
}

/// FQ-2
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "FQ-2")]
fn product(seats: f64, span: Nanos) -> u64 {
    ((seats * span as f64) / 10.0).round() as i64 as u64
}
