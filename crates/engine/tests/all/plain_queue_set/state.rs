//! Everything about a queue set that can be seen from outside, of the plain one and of the indexed one.

use evenkeel_engine::borrowing::DemandIntegrator;
use evenkeel_engine::queue_set::{Counters, Phase, QueueSet, QueueView};
use evenkeel_engine::{SeatSeconds, WorkEstimate};

use super::{PlainQueueSet, Queue};

#[derive(Debug, PartialEq)]
pub(crate) struct QueueSetState {
    r: SeatSeconds,
    robin: i64,
    placed: u64,
    waiting: usize,
    executing: usize,
    seats_in_use: i64,
    seats_waiting: i64,
    concurrency_limit: i64,
    queue_length_limit: i64,
    counters: Counters,
    demand: DemandIntegrator,
    /// Each queue, with the requests that wait in it.
    pub(crate) queues: Vec<(QueueView, Vec<usize>)>,
    /// What can still change of the requests that have not ended, by number.
    requests: Vec<(usize, Phase, Option<usize>, WorkEstimate)>,
}

impl QueueSetState {
    /// Of the indexed queue set.
    pub(crate) fn of(set: &mut QueueSet<usize>) -> Self {
        let demand = *set.demand_mut();
        let set = &*set;
        let waiting_in = |queue| set.waiting_in(queue).map(|request| *request.payload).collect();
        let mut requests: Vec<_> =
            set.requests().map(|request| (*request.payload, request.phase, request.queue, request.work)).collect();
        requests.sort_by_key(|request| request.0);
        Self {
            r: set.virtual_time(),
            robin: set.robin().expect("shuffle-sharded queues"),
            placed: set.placed(),
            waiting: set.waiting(),
            executing: set.executing(),
            seats_in_use: set.seats_in_use(),
            seats_waiting: set.seats_waiting(),
            concurrency_limit: set.concurrency_limit(),
            queue_length_limit: set.queue_length_limit(),
            counters: set.counters(),
            demand,
            queues: set.queues().enumerate().map(|(index, view)| (view, waiting_in(index))).collect(),
            requests,
        }
    }
}

impl PlainQueueSet {
    pub(crate) fn state(&self) -> QueueSetState {
        let view = |queue: &Queue| {
            let waiting = || queue.fifo.iter().map(|&number| &self.requests[number]);
            let view = QueueView {
                next_r: SeatSeconds::from_units(queue.next_r),
                waiting: queue.fifo.len(),
                executing: queue.executing.len(),
                seats_in_use: queue.seats_in_use,
                initial_seats_waiting: waiting().map(|request| i64::from(request.work.initial_seats)).sum(),
                max_seats_waiting: self.fifo_max_seats(queue),
                work_waiting: SeatSeconds::from_units(self.fifo_work(queue)),
            };
            (view, queue.fifo.clone())
        };
        let requests = self.requests.iter().enumerate();
        QueueSetState {
            r: SeatSeconds::from_units(self.r),
            robin: self.robin,
            placed: self.enqueues,
            waiting: self.waiting,
            executing: self.executing,
            seats_in_use: self.seats_in_use,
            seats_waiting: self.seats_waiting,
            concurrency_limit: self.cl,
            queue_length_limit: self.queue_length_limit,
            counters: self.counters,
            demand: self.demand,
            queues: self.queues.iter().map(view).collect(),
            requests: requests
                .filter_map(|(number, request)| {
                    Some((number, request.phase?, self.index_of_queue(number), request.work))
                })
                .collect(),
        }
    }
}
