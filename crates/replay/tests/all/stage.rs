//! A flow control with a recorder, on a clock that is set by hand, and requests that make its dumps.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::division::Borrowing;
use evenkeel::flight::Flight;
use evenkeel::request::{Arrived, FlowRequest, LongRunning};
use evenkeel::{Attributes, FlowControl, FlowControlBuilder, Permit, RequestInfo, User, WorkEstimate};

/// A flow control with a recorder, on a clock that is set by hand.
pub(crate) struct Stage {
    pub(crate) flow: FlowControl,
    /// Whether requests cost something, of which a part arises while they run.
    pub(crate) has_costs: bool,
    /// Whether some requests run for long, and go on after their permits.
    pub(crate) has_long_running: bool,
    /// Whether requests end when they are told to.
    pub(crate) is_revocable: bool,
    /// How many requests were told to end.
    pub(crate) revoked: usize,
    clock: ManualClock,
    now: u64,
    waiting: Vec<Waiting>,
    running: BinaryHeap<Reverse<(u64, usize, What)>>,
    permits: Vec<Option<Permit>>,
    costs: Vec<u32>,
    kept: BinaryHeap<Reverse<(u64, usize)>>,
    long_running: Vec<Option<LongRunning>>,
    due: u64,
}

/// A request that waits, how long it will run, what it will cost, and when its client leaves.
struct Waiting {
    service: u64,
    cost: u32,
    leaves: u64,
    arrived: Arrived,
}

/// What happens to a request that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Costs,
    Ends,
}

const NEVER: u64 = u64::MAX;

// === impl Stage ===

impl Stage {
    pub(crate) fn new(objects: &str, seats: u32, borrowing: Borrowing) -> Self {
        Self::with(objects, seats, borrowing, |builder| builder)
    }

    pub(crate) fn with(
        objects: &str,
        seats: u32,
        borrowing: Borrowing,
        settings: impl FnOnce(FlowControlBuilder) -> FlowControlBuilder,
    ) -> Self {
        let clock = ManualClock::new();
        let flow = FlowControl::builder().server_concurrency(seats).borrowing(borrowing).objects(objects);
        let flow = flow.manual_clock(clock.clone()).wait_limit(Duration::from_millis(250));
        let flow = settings(flow).build();
        flow.record(8 << 20);
        Self {
            flow,
            has_costs: false,
            has_long_running: false,
            is_revocable: false,
            revoked: 0,
            clock,
            now: 0,
            waiting: Vec::new(),
            running: BinaryHeap::new(),
            permits: Vec::new(),
            costs: Vec::new(),
            kept: BinaryHeap::new(),
            long_running: Vec::new(),
            due: 0,
        }
    }

    pub(crate) fn run_until(&mut self, until: u64) {
        loop {
            let end = self.running.peek().map_or(NEVER, |Reverse((at, ..))| *at);
            let kept = self.kept.peek().map_or(NEVER, |Reverse((at, _))| *at);
            let leaves = self.waiting.iter().map(|waiting| waiting.leaves).min().unwrap_or(NEVER);
            let next = end.min(kept).min(leaves).min(self.due);
            if next > until {
                break;
            }
            self.go_to(next.max(self.now));
            if end == next {
                self.happen();
            }
            if kept == next
                && let Some(Reverse((_, place))) = self.kept.pop()
            {
                self.long_running[place] = None;
            }
            let now = self.now;
            self.waiting.retain(|waiting| waiting.leaves > now);
            self.look();
        }
        self.go_to(until);
    }

    /// A request that runs costs something, or ends.
    fn happen(&mut self) {
        let Some(Reverse((at, place, what))) = self.running.pop() else { return };
        let Some(permit) = &self.permits[place] else { return };
        let cost = f64::from(self.costs[place]);
        match what {
            What::Costs => permit.add_cost((cost / 2.0).floor()),
            What::Ends => {
                if self.has_costs {
                    permit.set_cost(cost);
                }
                if let Some(kept) = permit.take_long_running() {
                    self.kept.push(Reverse((at + u64::from(self.costs[place]) * 1_000_037, self.long_running.len())));
                    self.long_running.push(Some(kept));
                }
                self.permits[place] = None;
            }
        }
    }

    fn go_to(&mut self, at: u64) {
        self.clock.advance(Duration::from_nanos(at - self.now));
        self.now = at;
    }

    pub(crate) fn look(&mut self) {
        self.flow.tick();
        let context = &mut Context::from_waker(Waker::noop());
        if self.is_revocable {
            for permit in &mut self.permits {
                if permit.as_ref().is_some_and(|permit| permit.poll_revoked(context).is_ready()) {
                    *permit = None;
                    self.revoked += 1;
                }
            }
        }
        for mut waiting in std::mem::take(&mut self.waiting) {
            match Pin::new(&mut waiting.arrived).poll(context) {
                Poll::Pending => self.waiting.push(waiting),
                Poll::Ready(Err(_)) => {}
                Poll::Ready(Ok(permit)) => {
                    let place = self.permits.len();
                    self.running.push(Reverse((self.now + waiting.service, place, What::Ends)));
                    if self.has_costs {
                        self.running.push(Reverse((self.now + waiting.service / 3, place, What::Costs)));
                    }
                    self.permits.push(Some(permit));
                    self.costs.push(waiting.cost);
                }
            }
        }
        // A request that has waited for its rate may wait for a seat now.
        self.due = self.now.saturating_add(u64::try_from(self.flow.tick().as_nanos()).unwrap_or(NEVER).max(1));
    }
}

/// Bursts of requests, which are more than there are seats for.
pub(crate) fn recorded(objects: &str, seats: u32, borrowing: Borrowing, seed: u64) -> Flight {
    recorded_on(&mut Stage::new(objects, seats, borrowing), seats, seed)
}

pub(crate) fn recorded_on(stage: &mut Stage, seats: u32, seed: u64) -> Flight {
    recorded_with(stage, seed, |stage, number| {
        if seed % 2 == 1 && number % 600 == 599 {
            stage.flow.set_server_concurrency(seats + number / 600 * 2 - 1);
        }
    })
}

/// `change` is called before each request with its number.
pub(crate) fn recorded_with(stage: &mut Stage, seed: u64, change: impl Fn(&mut Stage, u32)) -> Flight {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut at = 1_000_000;
    for number in 0..2000 {
        at += random.u64(1..if number % 500 < 300 { 2_000_000 } else { 9_000_000 });
        stage.run_until(at);
        change(stage, number);
        let user = User::new(format!("user-{}", random.u64(0..7)), [""; 0]);
        let request = RequestInfo::for_path("get", if random.bool() { "/orders/7" } else { "/reports" });
        let work = WorkEstimate::seats(random.u32(1..=3));
        let request = FlowRequest::new(Attributes { user: &user, request: &request }).work(work);
        let is_long_running = stage.has_long_running && random.u32(0..4) == 0;
        let request = if is_long_running { request.long_running() } else { request };
        let arrived = stage.flow.arrive_request(request);
        if random.u32(0..50) == 0 {
            // Its client leaves at once.
            drop(arrived);
        } else {
            let service = random.u64(1_000_003..40_000_000);
            let (cost, leaves) = if stage.has_costs || stage.has_long_running {
                let leaves = if random.u32(0..20) == 0 { at + random.u64(1..20_000_000) } else { NEVER };
                (random.u32(1..200), leaves)
            } else {
                (0, NEVER)
            };
            stage.waiting.push(Waiting { service, cost, leaves, arrived });
        }
        stage.look();
    }
    stage.run_until(at + 2_000_000_000);
    stage.flow.flight(Duration::from_secs(3600), "a test").unwrap()
}
