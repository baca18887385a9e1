//! The limit that finds itself, run by the library: sums from the event stream, ticks while requests wait (AL).

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::events::{Event, EventKind, RunEnd};
use evenkeel::identify::Anonymous;
use evenkeel::limit::{Concurrency, Learnt, Load};
use evenkeel::request::Arrived;
use evenkeel::service::NotFailed;
use evenkeel::{FlowControl, FlowControlBuilder, Permit, WorkEstimate};
use http::{Response, StatusCode};
use http_body::Body;

use crate::layer::{self, Mock, Reply, ask, get, send};
use crate::service::{assert_idle, attributes, objects, per_flow, queuing, user};

/// A service with so many slots: a request takes some 12 ms, and longer in proportion when more are inside.
struct Service {
    flow: FlowControl,
    clock: ManualClock,
    slots: f64,
    waiting: VecDeque<Pin<Box<Arrived>>>,
    /// The permits, with the milliseconds of work that are left.
    running: Vec<(Permit, f64)>,
    /// The share of requests that fail.
    fails: bool,
    answered: usize,
    /// When the flow control wants to be asked again.
    due: Duration,
    looks: usize,
    seed: u64,
}

impl Service {
    fn new(builder: FlowControlBuilder) -> Self {
        let clock = ManualClock::new();
        let flow = builder.manual_clock(clock.clone()).build();
        let (waiting, running, due) = (VecDeque::new(), Vec::new(), Duration::ZERO);
        Self { flow, clock, slots: 20.0, waiting, running, fails: false, answered: 0, due, looks: 0, seed: 1 }
    }

    fn seats(&self) -> u32 {
        self.flow.limit_state().unwrap().status.applied
    }

    /// A millisecond passes in which so many requests arrive.
    fn pass(&mut self, arrivals: usize) {
        let caller = user("a", "tenants");
        for _ in 0..arrivals {
            self.waiting.push_back(Box::pin(self.flow.arrive(attributes(&caller), WorkEstimate::ONE_SEAT)));
        }
        self.clock.advance(Duration::from_millis(1));
        #[expect(clippy::cast_precision_loss, reason = "a few requests")]
        let inside = self.running.len() as f64;
        let speed = (self.slots / inside.max(1.0)).min(1.0);
        let fails = self.fails;
        let answered = &mut self.answered;
        self.running.retain_mut(|(permit, left)| {
            *left -= speed;
            if *left <= 0.0 {
                *answered += 1;
                if fails {
                    permit.mark_failed();
                }
            }
            *left > 0.0
        });
        let mut context = Context::from_waker(Waker::noop());
        let mut still = VecDeque::new();
        for mut arrived in self.waiting.drain(..) {
            match arrived.as_mut().poll(&mut context) {
                // The work of requests differs, so that they do not end all at once.
                Poll::Ready(Ok(permit)) => {
                    self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let milliseconds = 5.0 + f64::from(u8::try_from(self.seed >> 60).unwrap());
                    self.running.push((permit, milliseconds));
                }
                Poll::Ready(Err(_)) => {}
                Poll::Pending => still.push_back(arrived),
            }
        }
        self.waiting = still;
        // Whoever begins to wait has the upkeep look at once.
        if self.clock.elapsed() >= self.due || !self.waiting.is_empty() {
            self.due = self.clock.elapsed().saturating_add(self.flow.tick());
            self.looks += 1;
        }
    }

    /// So many milliseconds with more requests than the service can do.
    fn overload(&mut self, milliseconds: usize) {
        for _ in 0..milliseconds {
            self.pass(40_usize.saturating_sub(self.waiting.len()));
        }
    }
}

fn auto() -> FlowControlBuilder {
    FlowControl::builder().server_concurrency_auto(1..=1000).objects(objects([per_flow("tenants", 100, 1000)]))
}

/// AL-1, AL-8: the limit finds the slots of the service from a start far below and far above.
#[test]
fn the_limit_finds_the_slots_of_the_service() {
    for first in [4, 200] {
        let mut service = Service::new(auto().server_concurrency(first));
        service.flow.set_concurrency(Concurrency::Auto(1..=1000));
        assert_eq!(service.seats(), first, "it starts where the number was");
        service.overload(30_000);
        let state = service.flow.limit_state().unwrap();
        assert!((16..=26).contains(&service.seats()), "from {first}: {:?}", state.status);
        assert!(state.counts["search"] > 0 && state.counts["search-done"] > 0, "{:?}", state.counts);
        assert!(state.status.is_known && state.status.load == Load::Overload);
        let told: Vec<_> = state.steps.iter().map(|step| step.change.to_string()).collect();
        assert!(told.iter().any(|sentence| sentence.starts_with("trial ")), "{told:#?}");
        assert!(state.steps.windows(2).all(|two| two[0].number < two[1].number && two[0].ago >= two[1].ago));
    }
}

/// AL-2, AL-4: nothing is tried while nobody waits, and a service that nobody asks costs nothing.
#[test]
fn nothing_happens_while_nobody_waits() {
    let mut service = Service::new(auto());
    for _ in 0..3000 {
        service.pass(1);
    }
    let state = service.flow.limit_state().unwrap();
    assert_eq!((state.status.applied, state.steps.len()), (20, 0), "{state:?}");
    assert!(service.looks <= 3000 / 50 + 10, "{} looks", service.looks);
    service.looks = 0;
    for _ in 0..60_000 {
        service.pass(0);
    }
    assert_idle(&service.flow);
    assert!(service.looks <= 15, "{} looks in an idle minute: {:?}", service.looks, service.flow.tick());
}

/// AL-5: failures brake at once, at any load.
#[test]
fn failures_brake_at_light_load() {
    let learnt = Learnt { limit: 100.0, ln_cost: None, peak: 0.0 };
    let mut service = Service::new(auto().learnt_limit(learnt));
    assert_eq!(service.seats(), 100);
    service.fails = true;
    let mut lowest = 100;
    for _ in 0..600 {
        service.pass(1);
        lowest = lowest.min(service.seats());
    }
    assert!(lowest <= 70, "{:?}", service.flow.limit_state());
}

/// AL-6: the limit never is below what the levels need, not for a moment.
#[test]
fn levels_that_come_get_their_seats() {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency_auto(1..=1000).manual_clock(clock.clone());
    let flow = flow.learnt_limit(Learnt { limit: 2.0, ln_cost: None, peak: 0.0 }).build();
    let names = ["a", "b", "c", "d", "e"];
    let levels = objects(names.map(|name| queuing(name, 10)));
    flow.check_objects(&levels).expect("the limit rises");
    let report = flow.apply(levels).unwrap();
    assert_eq!(report.too_few_seats, None);
    let seats = |flow: &FlowControl| {
        let status = flow.status();
        status
            .iter()
            .filter(|level| names.contains(&&*level.name))
            .map(|level| level.limits.nominal)
            .collect::<Vec<_>>()
    };
    assert_eq!(seats(&flow), [1; 5]);
    clock.advance(Duration::from_secs(1));
    flow.tick();
    assert_eq!(seats(&flow), [1; 5], "the next look leaves them");
    assert_eq!(flow.limit_state().unwrap().floor, 6, "`catch-all` too");
}

/// AL-3: from a number to `auto` and back, with requests that run and wait.
#[test]
fn a_change_between_number_and_auto_loses_no_request() {
    let mut service = Service::new(auto().server_concurrency(10));
    let (mut arrived, mut changes) = (0, 0);
    for millisecond in 0..6000 {
        if millisecond % 250 == 0 {
            let next = if changes % 2 == 0 { "auto:5..50" } else { "10" };
            service.flow.set_concurrency(next.parse().unwrap());
            assert_eq!(service.flow.concurrency().to_string(), next);
            changes += 1;
        }
        let more = 30_usize.saturating_sub(service.waiting.len());
        arrived += more;
        service.pass(more);
    }
    while !(service.waiting.is_empty() && service.running.is_empty()) {
        service.pass(0);
    }
    assert_eq!(service.answered, arrived);
    assert_idle(&service.flow);
    assert_eq!(service.flow.limit_state(), None, "it is a number again");
}

/// AL-10: held down by an outside signal, also across other bounds.
#[test]
fn a_limit_that_is_held_down_stays() {
    let learnt = Learnt { limit: 8.0, ln_cost: None, peak: 0.0 };
    let mut service = Service::new(auto().learnt_limit(learnt));
    service.flow.hold_limit(true);
    service.flow.set_concurrency(Concurrency::Auto(2..=500));
    service.overload(5000);
    assert!(service.seats() <= 8 && service.flow.limit_state().unwrap().is_held_down);
    service.flow.hold_limit(false);
    service.overload(20_000);
    assert!(service.seats() > 12, "{:#?}", service.flow.limit_state().unwrap());
}

/// AL-3: what was learnt starts the next run.
#[test]
fn what_was_learnt_starts_the_next_run() {
    let mut service = Service::new(auto());
    assert_eq!(service.flow.learnt_limit(), None);
    service.overload(15_000);
    let learnt = service.flow.learnt_limit().expect("it is known");
    let next = Service::new(auto().learnt_limit(learnt));
    assert!((f64::from(next.seats()) - learnt.limit).abs() <= 0.5, "{learnt:?}");
}

/// AL-7: metrics, for limits that find themselves only.
#[test]
fn metrics_tell_of_the_limit() {
    let mut service = Service::new(auto());
    service.overload(3000);
    let page = |flow: &FlowControl| {
        let mut registry = evenkeel::metrics::prometheus_client::registry::Registry::default();
        flow.register_metrics(&mut registry).unwrap();
        let mut text = String::new();
        evenkeel::metrics::prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    };
    let text = page(&service.flow);
    for line in [
        "evenkeel_limit_known",
        "evenkeel_limit_bound_seats{bound=\"upper\"} 1000",
        "evenkeel_limit_load{load=\"overload\"} 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    service.flow.set_server_concurrency(20);
    assert!(!page(&service.flow).contains("\nevenkeel_limit"), "only what it would mean");
}

/// AL-5: the layer says which requests have failed: by their status, without a response, and in the middle of it.
#[tokio::test(start_paused = true)]
async fn the_layer_counts_failures() {
    let failed = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&failed);
    let flow = layer::flow();
    flow.listen(move |_, _| {
        let noted = Arc::clone(&noted);
        move |events: &[Event]| {
            for event in events {
                if let EventKind::Finished { end, .. } = event.kind() {
                    noted.lock().unwrap().push(end);
                }
            }
        }
    });
    let layer = flow.layer(Anonymous);
    let take = || {
        flow.deliver_events();
        std::mem::take(&mut *failed.lock().unwrap())
    };
    for (status, end) in
        [(200, RunEnd::Done), (404, RunEnd::Done), (429, RunEnd::Failed), (500, RunEnd::Failed), (503, RunEnd::Failed)]
    {
        let mock = Mock::new(move |_| {
            let mut response = Response::new(layer::TestBody::empty());
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            Reply::Now(response)
        });
        drop(ask(&layer, &mock, get("/orders")));
        assert_eq!(take(), [end], "{status}");
    }

    let mock = Mock::new(|_| {
        let mut response = Response::new(layer::TestBody::empty());
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        response.extensions_mut().insert(NotFailed);
        Reply::Now(response)
    });
    drop(ask(&layer, &mock, get("/orders")));
    assert_eq!(take(), [RunEnd::Done], "only its client is to blame");

    let mut unanswered = send(&layer, &Mock::stuck(), get("/orders"));
    assert!(unanswered.poll().is_none());
    drop(unanswered);
    assert_eq!(take(), [RunEnd::Left], "its client has gone: the service may be as good as ever");

    let (mock, frames) = Mock::streaming();
    let mut body = ask(&layer, &mock, get("/orders")).into_body();
    frames.send(Err("broken off")).unwrap();
    assert!(Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop())).is_ready());
    assert_eq!(take(), [RunEnd::Failed], "the response broke off");
}

/// AL-5: clients that leave do not say that the service fails: the limit stays as it is.
#[tokio::test(start_paused = true)]
async fn clients_that_leave_do_not_brake() {
    let clock = ManualClock::default();
    let flow = FlowControl::builder().server_concurrency_auto(1..=100).manual_clock(clock.clone()).build();
    let layer = flow.layer(Anonymous);
    let mut brakes = Vec::new();
    for is_left in [true, false] {
        for _ in 0..200 {
            let mock = if is_left { Mock::stuck() } else { failing() };
            let mut request = send(&layer, &mock, get("/orders"));
            drop(request.poll());
            clock.advance(Duration::from_millis(5));
            drop(request);
            flow.tick();
        }
        brakes.push(flow.limit_state().unwrap().counts.contains_key("brake"));
    }
    assert_eq!(brakes, [false, true]);
}

/// A service that fails at once.
fn failing() -> Mock {
    Mock::new(|_| {
        let mut response = Response::new(layer::TestBody::empty());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        Reply::Now(response)
    })
}
