//! `Outlook`: what a request that arrived now would find: its queue, and how many requests would start before it. Nothing
//! changes.
//!
//! It is an estimate for people, based on the requests that wait now, and not on later arrivals.

use std::time::Duration;

use super::QueueSet;
use crate::Flow;

/// What a request of a flow would find.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Outlook {
    /// The number of the queue that it would join; none if its flow has no queue yet.
    pub queue: Option<usize>,
    /// How many requests wait in that queue.
    pub in_queue: usize,
    /// How many requests may wait there. More are rejected while no seat is free.
    pub in_queue_max: u64,
    /// How many waiting requests would start before it, those of other queues included.
    pub ahead: f64,
    /// The seats that it would have to leave free: they are kept for flows of which nothing runs (PF-10).
    pub kept: i64,
    /// Whether requests wait that have to leave seats free, and it need not: it starts before them.
    pub passes_others: bool,
    /// Whether its flow holds as many seats as it may (PF-11).
    pub is_at_flow_limit: bool,
}

/// A shorter service time is none.
const SERVICE_SECONDS_MIN: f64 = 1e-6;

// === impl QueueSet ===

impl<T> QueueSet<T> {
    /// What a request of this flow would find; `None` if there are no queues. `service` is how long requests hold a seat.
    ///
    /// It takes time in proportion to the number of queues or flows.
    ///
    /// ```
    /// use std::time::Duration;
    /// use evenkeel_engine::WorkEstimate;
    /// use evenkeel_engine::queue_set::{Mode, NoEffects, QueueSet, QueueSetConfig};
    /// use evenkeel_engine::time::Instant;
    ///
    /// let now = Instant::from_nanos(0);
    /// let config = QueueSetConfig { mode: Mode::queue(1, 1, 50)?, concurrency_limit: 1 };
    /// let mut set = QueueSet::new(config, now);
    /// for _ in 0..4 {
    ///     set.arrive(now, 7, WorkEstimate::ONE_SEAT, (), &mut NoEffects);
    /// }
    /// let outlook = set.outlook(7, Duration::from_millis(100)).unwrap();
    /// assert_eq!((outlook.in_queue, outlook.ahead), (3, 3.0));
    /// # Ok::<(), evenkeel_engine::deal::InvalidDeal>(())
    /// ```
    pub fn outlook<'a>(&self, flow: impl Into<Flow<'a>>, service: Duration) -> Option<Outlook> {
        self.discipline.outlook(flow.into(), service.as_secs_f64().max(SERVICE_SECONDS_MIN))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use crate::WorkEstimate;
    use crate::queue_set::{Arrival, Mode, Phase, QueueSet, QueueSetConfig, QueuingDiscipline, RequestId};
    use crate::time::{Instant, MILLISECOND};

    const SERVICE: i64 = 100;

    /// A level of some seats on which every request takes 100 ms.
    struct Busy {
        set: QueueSet<()>,
        now: i64,
        /// The ends of running requests, in order.
        ends: VecDeque<(i64, RequestId)>,
        started: usize,
    }

    impl Busy {
        fn new(discipline: QueuingDiscipline, seats: i64) -> Self {
            let mode = Mode::queue(64, 4, 1000).unwrap().with_discipline(discipline);
            let config = QueueSetConfig { mode, concurrency_limit: seats };
            let (now, ends) = (0, VecDeque::new());
            Self { set: QueueSet::new(config, Instant::from_nanos(0)), now, ends, started: 0 }
        }

        fn at(&self) -> Instant {
            Instant::from_nanos(self.now * MILLISECOND)
        }

        fn arrive(&mut self, flow: u64) -> RequestId {
            let (at, end) = (self.at(), self.now + SERVICE);
            let hash = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            match self.set.arrive(at, hash, WorkEstimate::ONE_SEAT, (), &mut |_, (): &mut ()| {}) {
                Arrival::Started { id, .. } => {
                    self.ends.push_back((end, id));
                    id
                }
                Arrival::Waiting { id, .. } => id,
                Arrival::Rejected { .. } => panic!("the queue has room"),
            }
        }

        /// Ends the next request that ends.
        fn step(&mut self) {
            let (end, id) = self.ends.pop_front().expect("something runs");
            self.now = end;
            let (at, mut started) = (self.at(), Vec::new());
            self.set.finish(at, id, &mut |id, (): &mut ()| started.push(id));
            self.started += started.len();
            self.ends.extend(started.into_iter().map(|id| (end + SERVICE, id)));
        }

        /// How many requests the outlook sees before one of this flow, and how many really start before it.
        fn expected_and_real(&mut self, flow: u64) -> (f64, f64) {
            let hash = flow.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let expected = self.set.outlook(hash, Duration::from_millis(100)).unwrap().ahead;
            let (id, before) = (self.arrive(flow), self.started);
            while self.set.phase(id) == Some(Phase::Waiting) {
                self.step();
            }
            #[expect(clippy::cast_precision_loss, reason = "a small number")]
            let real = (self.started - before - 1) as f64;
            (expected, real)
        }
    }

    #[test]
    fn about_as_many_requests_start_before_as_are_expected() {
        for discipline in [QueuingDiscipline::ShuffleSharded, QueuingDiscipline::PerFlow] {
            let (mut off, mut cases) = (0.0, 0.0);
            for (seats, flows, each) in [(1, 1, 30), (4, 1, 50), (4, 6, 20), (10, 8, 40), (16, 4, 60), (3, 12, 10)] {
                for flow in [0, flows / 2, flows - 1, 1000] {
                    let mut busy = Busy::new(discipline, seats);
                    // Requests start at different times, as in a real service.
                    for n in 0..flows * each {
                        busy.arrive(n % flows);
                        busy.now += i64::from(n < 20) * 7;
                    }
                    (0..flows * each / 4).for_each(|_| busy.step());
                    let (expected, real) = busy.expected_and_real(flow);
                    #[expect(clippy::cast_precision_loss, reason = "a small number")]
                    let difference = (expected - real).abs() / real.max(2.0 * seats as f64);
                    assert!(
                        difference <= 0.6,
                        "{discipline:?}, {seats} seats, {flows} flows of {each}, flow {flow}: expected {expected}, real {real}"
                    );
                    (off, cases) = (off + difference, cases + 1.0);
                }
            }
            assert!(off / cases < 0.15, "{discipline:?}: {:.0} % off on average", 100.0 * off / cases);
        }
    }
}
