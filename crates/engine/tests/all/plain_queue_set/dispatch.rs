//! Seats are taken and given back: FQ-20 to FQ-23, FQ-33 and FQ-36.

use evenkeel_engine::SeatSeconds;
use evenkeel_engine::queue_set::Phase;
use evenkeel_engine::time::Instant;

use super::PlainQueueSet;

impl PlainQueueSet {
    /// FQ-20
    pub(super) fn bound(&mut self, index: usize) {
        let queue = &mut self.queues[index];
        if let Some(&head) = queue.fifo.first() {
            queue.next_r = queue.next_r.max(self.requests[head].arrival_r);
        }
    }

    /// FQ-21
    pub(super) fn accommodates(&self, seats: u32) -> bool {
        let seats = i64::from(seats);
        if self.desired_queues < 0 {
            true
        } else if seats > self.cl {
            self.executing == 0
        } else {
            self.seats_in_use + seats <= self.cl
        }
    }

    /// FQ-22
    pub(super) fn dispatch(&mut self, now: Instant) {
        while self.waiting != 0 && self.seats_in_use < self.cl && self.try_dispatch(now) {}
    }

    /// FQ-23
    fn try_dispatch(&mut self, now: Instant) -> bool {
        let count = self.queues.len();
        let start = usize::try_from(self.robin + 1).expect("a small number") % count;
        let (mut chosen, mut smallest) = (None, u64::MAX);
        for index in (0..count).map(|step| (start + step) % count) {
            let queue = &self.queues[index];
            if let Some(&head) = queue.fifo.first() {
                let finish = queue.next_r.wrapping_add(self.requests[head].total_work);
                if finish < smallest {
                    (chosen, smallest) = (Some((index, head)), finish);
                }
            }
        }
        let Some((index, head)) = chosen else { return false };
        if !self.accommodates(self.requests[head].work.max_seats()) {
            if self.robin == -1 {
                self.robin = self.queue_count() - 1;
            }
            self.told.blocked.push(head);
            return false;
        }
        self.queues[index].fifo.remove(0);
        self.narrow(head);
        self.robin = i64::try_from(index).expect("a small number");
        self.waiting -= 1;
        let (queue, request) = (&mut self.queues[index], &mut self.requests[head]);
        let seats = i64::from(request.work.max_seats());
        self.seats_waiting -= seats;
        (request.start, request.resized) = (now, now);
        queue.executing.push(head);
        queue.seats_in_use += seats;
        self.counters.last_dispatch_r = SeatSeconds::from_units(self.r);
        self.counters.last_dispatch_s = SeatSeconds::from_units(queue.next_r);
        queue.next_r = queue.next_r.wrapping_add(request.total_work);
        self.start(head);
        self.signal_demand(now);
        self.bound(index);
        true
    }

    /// FQ-23, step 2
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "FQ-3")]
    fn narrow(&mut self, number: usize) {
        let request = &mut self.requests[number];
        if i64::from(request.work.final_seats) > self.cl {
            request.work.final_seats = u32::try_from(self.cl).expect("a small number");
            request.work.additional_latency = ((request.final_work as f64 / self.cl as f64) * 10.0).trunc() as i64;
        }
    }

    pub(super) fn start(&mut self, number: usize) {
        let request = &mut self.requests[number];
        request.phase = Some(Phase::Executing);
        self.executing += 1;
        self.seats_in_use += i64::from(request.work.max_seats());
        self.counters.dispatched += 1;
        self.told.started.push(number);
    }

    /// FQ-33, FQ-36
    pub(super) fn give_seats_back(&mut self, now: Instant, number: usize) {
        let seats = i64::from(self.requests[number].work.max_seats());
        self.requests[number].phase = None;
        self.seats_in_use -= seats;
        self.signal_demand(now);
        // KW-15: a queue that was removed is not found.
        let Some(index) = self.index_of_queue(number) else { return };
        self.queues[index].seats_in_use -= seats;
        if !self.queues[index].is_active() && self.queue_count() > self.desired_queues {
            self.queues.remove(index);
            if self.robin >= i64::try_from(index).expect("a small number") {
                self.robin -= 1;
            }
        }
    }
}
