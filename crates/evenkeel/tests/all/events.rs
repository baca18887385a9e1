//! The event stream: listeners are told everything, in order, and numbers never lag behind it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use evenkeel::clock::ManualClock;
use evenkeel::events::{Arrival, Event, EventKind, LevelNumbers, RequestId, RunEnd};
use evenkeel::{FlowControl, Permit, Rejected, WorkEstimate};
use evenkeel_engine::queue_set::Rejection;

use crate::service::{attributes, objects, per_flow, queuing, queuing_up_to, rejecting, user};

type Diary = Arc<Mutex<Vec<Event>>>;

/// How many threads send requests at a time.
const THREADS: usize = 4;

/// A listener that keeps everything that it is told of one level.
fn diary(level: &'static str) -> (Diary, impl Fn(evenkeel::events::LevelId, &str) -> Keep) {
    let diary = Diary::default();
    let kept = Arc::clone(&diary);
    (diary, move |_, name| Keep { kept: (name == level).then(|| Arc::clone(&kept)) })
}

struct Keep {
    kept: Option<Diary>,
}

impl evenkeel::events::Listener for Keep {
    fn on_events(&mut self, events: &[Event]) {
        assert!(events.last().unwrap().is_last(), "half of a call");
        if let Some(kept) = &self.kept {
            kept.lock().unwrap().extend_from_slice(events);
        }
    }
}

fn now<F: Future>(future: F) -> Option<F::Output> {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => Some(value),
        std::task::Poll::Pending => None,
    }
}

fn arrive(flow: &FlowControl, name: &str) -> Option<Result<Permit, Box<Rejected>>> {
    now(flow.arrive(attributes(&user(name, "tenants")), WorkEstimate::ONE_SEAT))
}

#[test]
fn a_listener_is_told_what_becomes_of_each_request() {
    let clock = ManualClock::new();
    let (diary, make) = diary("tenants");
    let flow = FlowControl::builder().kubernetes().manual_clock(clock.clone()).server_concurrency(1).listen(make);
    let flow = flow.objects(objects([queuing_up_to("tenants", 1000, 1)])).build();
    let seats = flow.status().iter().find(|level| level.name == "tenants").unwrap().current_limit;
    assert_eq!(seats, 1);

    let tenant = user("a", "tenants");
    let arrive = || flow.arrive(attributes(&tenant), WorkEstimate::ONE_SEAT);
    let first = now(arrive()).unwrap().expect("a seat");
    clock.advance(Duration::from_secs(1));
    let mut second = arrive();
    let refused = now(arrive()).unwrap().unwrap_err();
    assert_eq!(refused.reason, Rejection::QueueFull);
    clock.advance(Duration::from_secs(2));
    first.mark_failed();
    drop(first);
    let second = now(&mut second).unwrap().expect("the seat");
    let third = arrive();
    clock.advance(Duration::from_secs(3));
    drop(third);
    second.set_seats(2);
    drop(second);
    flow.deliver_events();

    let seconds = |seconds: i64| seconds * 1_000_000_000;
    let events = diary.lock().unwrap();
    // What the configuration did is not of interest here.
    let told: Vec<_> = events.iter().filter(|event| event.kind() != EventKind::Reconfigured).collect();
    let kinds: Vec<_> = told.iter().map(|event| (event.at().as_secs(), event.kind())).collect();
    let flow_hash = match kinds[0].1 {
        EventKind::Passed { flow, .. } => flow,
        other => panic!("{other:?}"),
    };
    let finished = |ran, has_failed| {
        let end = if has_failed { RunEnd::Failed } else { RunEnd::Done };
        EventKind::Finished { ran, lingers: false, is_watch: false, end }
    };
    let started = |waited| EventKind::Started { waited, was_queued: true, is_exempt: false };
    let arrived = |queue_length| EventKind::Arrived { flow: flow_hash, queue_length, waits: true };
    let gave_up = EventKind::GaveUp { waited: seconds(3), reason: Rejection::TimeOut, is_displaced: false };
    let expected = [
        (0, EventKind::Passed { flow: flow_hash, queue_length: 1, is_exempt: false }),
        (1, arrived(1)),
        (1, EventKind::Refused { flow: flow_hash, reason: Rejection::QueueFull }),
        (3, finished(seconds(3), true)),
        (3, started(seconds(2))),
        (3, arrived(1)),
        (6, gave_up),
        (6, EventKind::Resized { before: 1 }),
        (6, finished(seconds(3), false)),
    ];
    assert_eq!(kinds, expected);
    assert!(!told[3].is_last() && told[4].is_last(), "an end and the start that follows from it are one call");
    let LevelNumbers { executing, waiting, seats_in_use, is_saturated, .. } = told[3].level();
    assert_eq!((executing, waiting, seats_in_use, is_saturated), (1, 0, 1, false), "as it is afterwards");
    assert_eq!(told[2].request(), None, "it never was in the level");
    assert_eq!(told[0].request(), told[3].request());
    assert_eq!((told[1].request(), told[7].seats(), told[8].seats()), (told[4].request(), 2, 2));
}

/// Follows the events of a level from one state to the next, and finds whatever cannot be.
#[derive(Default)]
struct Follower {
    requests: HashMap<RequestId, &'static str>,
    seats: HashMap<RequestId, u32>,
    latest: Duration,
    dispatched: u64,
    rejected: u64,
}

impl Follower {
    fn follow(&mut self, events: &[Event]) {
        for event in events {
            assert!(event.at() >= self.latest, "time goes backwards");
            self.latest = event.at();
            let change = |requests: &mut HashMap<_, _>, from: Option<&'static str>, to: Option<&'static str>| {
                let id = event.request().unwrap();
                let before = match to {
                    Some(to) => requests.insert(id, to),
                    None => requests.remove(&id),
                };
                assert_eq!(before, from, "{event:?}");
            };
            let requests = &mut self.requests;
            match event.kind() {
                EventKind::Passed { .. } => change(requests, None, Some("runs")),
                EventKind::Arrived { .. } => change(requests, None, Some("waits")),
                EventKind::Started { .. } => change(requests, Some("waits"), Some("runs")),
                EventKind::GaveUp { .. } => change(requests, Some("waits"), None),
                EventKind::Finished { lingers: false, .. } => change(requests, Some("runs"), None),
                EventKind::Finished { lingers: true, .. } => change(requests, Some("runs"), Some("lingers")),
                EventKind::Released => change(requests, Some("lingers"), None),
                _ => {}
            }
            if let Some(id) = event.request() {
                self.seats.insert(id, event.seats());
            }
            self.dispatched += u64::from(matches!(event.kind(), EventKind::Passed { .. } | EventKind::Started { .. }));
            self.rejected += u64::from(matches!(event.kind(), EventKind::Refused { .. } | EventKind::GaveUp { .. }));
            if event.is_last() {
                let count = |state| u32::try_from(self.requests.values().filter(|is| **is == state).count()).unwrap();
                let in_use = self.requests.iter().filter(|(_, is)| **is != "waits").map(|(id, _)| self.seats[id]).sum();
                let LevelNumbers { executing, waiting, seats_in_use, .. } = event.level();
                assert_eq!((waiting, executing, seats_in_use), (count("waits"), count("runs"), in_use), "{event:?}");
            }
        }
    }
}

/// Several threads decide and hand events on, and a listener that follows every request finds no gap and no disorder.
#[test]
fn the_events_of_many_threads_are_those_of_one_level() {
    let levels = [
        queuing("tenants", 1000),
        queuing_up_to("tenants", 1000, 3),
        per_flow("tenants", 1000, 3),
        rejecting("tenants", 1000),
    ];
    for (number, level) in levels.into_iter().enumerate() {
        let follower = Arc::<Mutex<Follower>>::default();
        let follow = Arc::clone(&follower);
        let make = move |_, name: &str| {
            let follower = (name == "tenants").then(|| Arc::clone(&follow));
            move |events: &[Event]| {
                if let Some(follower) = &follower {
                    follower.lock().unwrap().follow(events);
                }
            }
        };
        let flow = FlowControl::builder().server_concurrency(3).objects(objects([level])).drive_by_hand();
        let flow = flow.listen(make).build();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let flow = &flow;
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for turn in 0..1_500_usize {
                        let tenant = user(["a", "b", "c"][(turn * 7 + thread) % 3], "tenants");
                        let mut arrived = flow.arrive(attributes(&tenant), WorkEstimate::ONE_SEAT);
                        match now(&mut arrived) {
                            Some(Ok(permit)) if turn % 5 == 0 => kept.push(permit),
                            Some(end) => drop(end),
                            None if turn % 3 == 0 => drop(arrived),
                            None => {
                                kept.clear();
                                drop(now(&mut arrived));
                            }
                        }
                        if turn % 11 == 0 {
                            drop(flow.status());
                        }
                    }
                });
            }
        });
        let reading = flow.reading();
        let level = reading.level("tenants").unwrap();
        let follower = follower.lock().unwrap();
        assert!(follower.requests.is_empty(), "level {number}: {:?}", follower.requests);
        assert_eq!(level.dispatched, follower.dispatched, "level {number}");
        assert_eq!(level.rejected.iter().map(|(_, count)| count).sum::<u64>(), follower.rejected, "level {number}");
        assert!(follower.dispatched > 0 && (follower.rejected > 0 || number == 0), "level {number}");
    }
}

#[test]
fn numbers_never_lag_behind_what_a_client_has_seen() {
    let flow = FlowControl::builder().objects(objects([queuing("tenants", 1000)])).drive_by_hand().build();
    for count in 1..=300 {
        drop(arrive(&flow, "a"));
        let reading = flow.reading();
        let level = reading.level("tenants").unwrap();
        assert_eq!((level.dispatched, level.executions.counts.iter().sum()), (count, count));
    }
}

#[test]
fn a_listener_that_panics_is_told_nothing_more_and_nobody_else_notices() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let make = move |_, _: &str| {
        let calls = Arc::clone(&counted);
        move |_: &[Event]| {
            calls.fetch_add(1, Ordering::Relaxed);
            panic!("a listener panics");
        }
    };
    let flow = FlowControl::builder().objects(objects([queuing("tenants", 1000)])).drive_by_hand().build();
    flow.listen(make);
    let before = calls.load(Ordering::Relaxed);
    for _ in 0..200 {
        drop(arrive(&flow, "a").unwrap().expect("a seat"));
    }
    assert_eq!(flow.reading().level("tenants").unwrap().dispatched, 200);
    assert_eq!(calls.load(Ordering::Relaxed), before + 1);
}

/// While the listeners are busy, events pile up to a bound, and then requests wait for the listeners.
#[test]
fn a_slow_listener_slows_requests_down_and_memory_does_not_grow() {
    let (largest, total) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (most, sum) = (Arc::clone(&largest), Arc::clone(&total));
    let make = move |_, _: &str| {
        let (most, sum) = (Arc::clone(&most), Arc::clone(&sum));
        move |events: &[Event]| {
            most.fetch_max(events.len(), Ordering::Relaxed);
            sum.fetch_add(events.len(), Ordering::Relaxed);
            // Slower than all requests together.
            for _ in 0..events.len() * 500 {
                std::hint::spin_loop();
            }
        }
    };
    let flow = FlowControl::builder().objects(objects([queuing("tenants", 1000)])).drive_by_hand().build();
    flow.listen(make);
    let before = total.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..2_000).for_each(|_| drop(arrive(&flow, "a").unwrap().expect("a seat"))));
        }
    });
    flow.deliver_events();
    assert_eq!(total.load(Ordering::Relaxed) - before, THREADS * 2_000 * 2, "each request arrives and ends");
    // Each thread may add one after it has waited for room, which others have filled meanwhile.
    let largest = largest.load(Ordering::Relaxed);
    assert!(largest <= 256 + THREADS, "{largest} events at a time");
}

#[test]
fn arrivals_come_with_what_they_are_classified_by() {
    let (diary, make) = diary("tenants");
    let arrivals = Arc::<Mutex<Vec<_>>>::default();
    let told = Arc::clone(&arrivals);
    let listen = move |arrival: &Arrival<'_>| {
        let names = (arrival.attributes.user.name.to_string(), arrival.flow_distinguisher.to_owned());
        told.lock().unwrap().push((names, arrival.request, arrival.at(), arrival.flow_hash));
    };
    let flow = FlowControl::builder().server_concurrency(1).objects(objects([rejecting("tenants", 1000)]));
    let flow = flow.drive_by_hand().listen(make).listen_to_arrivals(listen).build();
    let first = arrive(&flow, "alice").unwrap().expect("a seat");
    arrive(&flow, "bob").unwrap().unwrap_err();
    drop(first);
    flow.deliver_events();
    let events = diary.lock().unwrap();
    let arrived =
        events.iter().filter(|event| matches!(event.kind(), EventKind::Passed { .. } | EventKind::Refused { .. }));
    let expected: Vec<_> = arrived
        .map(|event| match event.kind() {
            EventKind::Passed { flow, .. } | EventKind::Refused { flow, .. } => (event.request(), event.at(), flow),
            _ => unreachable!(),
        })
        .collect();
    let arrivals = arrivals.lock().unwrap();
    let found: Vec<_> = arrivals.iter().map(|(_, request, at, flow)| (*request, *at, *flow)).collect();
    assert_eq!(found, expected);
    assert_eq!(found.len(), 2);
    let users: Vec<_> = arrivals.iter().map(|((user, _), ..)| user.as_str()).collect();
    assert_eq!(users, ["alice", "bob"]);
}

#[test]
fn a_listener_may_be_added_while_requests_run() {
    let flow = FlowControl::builder().objects(objects([queuing("tenants", 1000)])).drive_by_hand().build();
    let runs = arrive(&flow, "a").unwrap().expect("a seat");
    let is_told = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&is_told);
    flow.listen(move |_, name: &str| {
        let (is_tenants, told) = (name == "tenants", Arc::clone(&told));
        move |events: &[Event]| {
            let kinds: Vec<_> = events.iter().map(Event::kind).collect();
            if is_tenants {
                assert!(matches!(kinds[..], [EventKind::Finished { .. }]), "{kinds:?}");
                told.store(true, Ordering::Relaxed);
            }
        }
    });
    drop(runs);
    flow.deliver_events();
    assert!(is_told.load(Ordering::Relaxed));
}
