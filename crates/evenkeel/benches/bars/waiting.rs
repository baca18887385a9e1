//! A hundred thousand requests that wait: their memory, and how fast they are started.

use std::cell::LazyCell;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use evenkeel::request::Arrived;
use evenkeel::{FlowControl, Permit};
use evenkeel_bars::{Bar, Bars, nanos_per_operation};
use evenkeel_counting_allocator::counted;
use evenkeel_engine::{User, WorkEstimate};

use crate::ROUND;
use crate::service::{assert_idle, attributes, objects, queuing_up_to, user};

/// A waker as that of a task is: shared, and to be counted.
struct Task;

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

pub(crate) fn bars(bars: &mut Bars) {
    bars.measure("memory of each of 100,000 waiting requests, future and timer included", "bytes", || {
        (memory(), Bar::AtMost(1024.0, "bytes"))
    });
    let few = LazyCell::new(|| turns(FEW));
    bars.measure("dispatch of one request with 1,000 waiting", "ns", || (*few, Bar::None));
    bars.measure("dispatch of one request with 100,000 waiting", "ns", || (turns(MANY), Bar::TimesAtMost(1.2, *few)));
}

const MANY: u32 = 100_000;
const FEW: u32 = 1_000;

/// A service with one seat, which is taken, and so many requests behind it.
struct Crowd {
    flow: FlowControl,
    users: Vec<User>,
    waker: Waker,
    permit: Option<Permit>,
    waiting: VecDeque<Pin<Box<Arrived>>>,
}

impl Crowd {
    fn new(users: u32) -> Self {
        let flow = FlowControl::builder().kubernetes().server_concurrency(1).drive_by_hand().build();
        flow.apply(objects([queuing_up_to("tenants", 10_000, 200_000)])).expect("valid objects");
        let users = (0..users).map(|n| user(&format!("user-{n}"), "tenants")).collect();
        let mut crowd =
            Self { flow, users, waker: Waker::from(Arc::new(Task)), permit: None, waiting: VecDeque::new() };
        let mut first = crowd.admit(0);
        crowd.permit = crowd.poll(&mut first);
        crowd
    }

    fn admit(&self, n: u32) -> Pin<Box<Arrived>> {
        let user = &self.users[n as usize % self.users.len()];
        Box::pin(self.flow.arrive(attributes(user), WorkEstimate::ONE_SEAT))
    }

    fn poll(&self, admit: &mut Pin<Box<Arrived>>) -> Option<Permit> {
        match admit.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(result) => Some(result.expect("a seat")),
            Poll::Pending => None,
        }
    }

    fn fill(&mut self, requests: u32) {
        for n in 0..requests {
            let mut admit = self.admit(n);
            assert!(self.poll(&mut admit).is_none());
            self.waiting.push_back(admit);
        }
    }

    /// A permit ends, the next request starts, and one more arrives.
    fn turn(&mut self, n: u32) {
        drop(self.permit.take());
        while self.permit.is_none() {
            let mut next = self.waiting.pop_front().expect("somebody waits");
            self.permit = self.poll(&mut next);
            if self.permit.is_none() {
                self.waiting.push_back(next);
            }
        }
        let mut admit = self.admit(n);
        assert!(self.poll(&mut admit).is_none());
        self.waiting.push_back(admit);
    }

    fn end(self) {
        drop((self.waiting, self.permit));
        assert_idle(&self.flow);
    }
}

fn in_runtime<T>(run: impl FnOnce() -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let _inside = runtime.enter();
    run()
}

/// The bytes of each of many waiting requests.
fn memory() -> f64 {
    in_runtime(|| {
        let mut crowd = Crowd::new(100);
        crowd.waiting.reserve(MANY as usize);
        let ((), _, bytes) = counted(|| crowd.fill(MANY));
        crowd.end();
        bytes as f64 / f64::from(MANY)
    })
}

/// The time of a turn while so many wait.
fn turns(waiting: u32) -> f64 {
    in_runtime(|| {
        // One user: one queue, so that the requests start in the order in which they are looked at.
        let mut crowd = Crowd::new(1);
        crowd.fill(waiting);
        let turn = nanos_per_operation(ROUND, || (0..ROUND).for_each(|n| crowd.turn(n)));
        crowd.end();
        turn
    })
}
