//! A dump of the flight recorder with as many requests as are asked for, recorded on a clock that is set by hand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::request::Arrived;
use evenkeel::{Attributes, FlowControl, Permit, RequestInfo, User, WorkEstimate};

const OBJECTS: &str = "
levels:
  orders: {share: 3, queue: 6, wait: 300ms, lend: 50%}
  rest: {share: 1, queue: 4, wait: 200ms}
match:
- {path: /orders/*, level: orders}
- {level: rest}
";
const SEATS: u32 = 20;
const USERS: usize = 50;
/// More than a request takes in the memory of a recorder.
const RECORD_BYTES: usize = 128;

/// The bytes of a dump of so many requests: bursts of more than there are seats for, and pauses.
pub(crate) fn dump(requests: usize) -> Vec<u8> {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(SEATS).manual_clock(clock.clone()).objects(OBJECTS).build();
    flow.record(requests * RECORD_BYTES);
    let users: Vec<User> = (0..USERS).map(|number| User::new(format!("user-{number}"), [""; 0])).collect();
    let paths = ["/orders/7", "/orders/8", "/reports"].map(|path| RequestInfo::for_path("get", path));
    let mut random = fastrand::Rng::with_seed(1);
    let (mut now, mut waiting) = (0_u64, Vec::<(u64, Arrived)>::new());
    let mut running: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let mut permits: Vec<Option<Permit>> = Vec::new();
    for number in 0..requests {
        let pause = if number % 500 < 300 { 1_600_000 } else { 3_000_000 };
        let at = now + random.u64(1..pause);
        while let Some(Reverse((end, place))) = running.peek().copied().filter(|Reverse((end, _))| *end <= at) {
            running.pop();
            clock.advance(Duration::from_nanos(end - now));
            now = end;
            drop(permits[place].take());
            start(now, &mut waiting, &mut running, &mut permits);
        }
        clock.advance(Duration::from_nanos(at - now));
        now = at;
        flow.tick();
        let attributes = Attributes { user: random.choice(&users).unwrap(), request: random.choice(&paths).unwrap() };
        let arrived = flow.arrive(attributes, WorkEstimate::seats(random.u32(1..=2)));
        waiting.push((random.u64(1_000_000..30_000_000), arrived));
        start(now, &mut waiting, &mut running, &mut permits);
    }
    flow.flight(Duration::from_nanos(now), "a benchmark").unwrap().to_bytes()
}

/// Starts those that may start, and forgets those that were rejected.
fn start(
    now: u64,
    waiting: &mut Vec<(u64, Arrived)>,
    running: &mut BinaryHeap<Reverse<(u64, usize)>>,
    permits: &mut Vec<Option<Permit>>,
) {
    waiting.retain_mut(|(service, arrived)| match Pin::new(arrived).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Pending => true,
        Poll::Ready(Err(_)) => false,
        Poll::Ready(Ok(permit)) => {
            let place = permits.len();
            running.push(Reverse((now + *service, place)));
            permits.push(Some(permit));
            false
        }
    });
}
