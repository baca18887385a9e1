//! The whole library under shuttle, which tries out the orders in which threads can take its locks: no wake-up and no
//! seat is ever lost.
//!
//! The modules are those of the library, compiled a second time with other locks: see `src/sync.rs`.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::pedantic,
    reason = "the library itself is checked elsewhere"
)]

#[path = "../src/control/mod.rs"]
mod control;
#[path = "../src/layer/mod.rs"]
mod layer;
#[path = "../src/observe/mod.rs"]
mod observe;
mod service;

/// Shuttle's locks in the place of those of the standard library.
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard};

    pub(crate) fn run_test(test: impl Fn() + Send + Sync + 'static) {
        shuttle::check_random(test, 1);
    }
}

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use evenkeel_api::v1::PriorityLevelConfiguration;
use evenkeel_engine::WorkEstimate;
use evenkeel_engine::controller::Borrowing;
use evenkeel_engine::queue_set::Rejection;
use shuttle::future::block_on;
use shuttle::thread;

use control::admit::Arrived;
use control::clock::ManualClock;
use control::flow_control::FlowControl;
use control::permit::Permit;
use control::rejected::Rejected;
use control::request::FlowRequest;
use control::seat_times::SeatTimes;
use service::{assert_idle, attributes, level_names, objects, queuing, totals, user};

/// How many orders are tried out in each test.
const ORDERS: usize = 400;

/// A service of one level with one seat.
fn one_seat() -> (FlowControl, ManualClock) {
    let clock = ManualClock::new();
    let nothing = FlowControl::builder().kubernetes().objects(evenkeel_engine::controller::Objects::default());
    let flow = nothing.server_concurrency(1).manual_clock(clock.clone()).build();
    flow.apply(objects([queuing("tenants", 1000)])).expect("valid objects");
    (flow, clock)
}

fn admit(flow: &FlowControl, name: &str) -> Arrived {
    flow.arrive(attributes(&user(name, "tenants")), WorkEstimate::ONE_SEAT)
}

/// Polls once, with a waker that wakes nobody.
fn poll_once(admit: std::pin::Pin<&mut Arrived>) -> Poll<Result<Permit, Box<Rejected>>> {
    admit.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_seat_goes_round_and_everybody_is_woken() {
    shuttle::check_random(
        || {
            let (flow, _clock) = one_seat();
            let run = |name: &'static str, flow: FlowControl| {
                thread::spawn(move || drop(block_on(admit(&flow, name)).expect("a permit")))
            };
            let threads = ["a", "b", "c"].map(|name| run(name, flow.clone()));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_idle(&flow);
        },
        ORDERS,
    );
}

/// A seat that is given back goes to who waits in the same level at that very moment, whatever other threads do meanwhile.
#[test]
fn a_seat_is_not_idle_between_two_requests_of_a_level() {
    for borrowing in [Borrowing::Periodic, Borrowing::Immediate] {
        shuttle::check_random(
            move || {
                let (flow, clock) = one_seat();
                flow.set_borrowing(borrowing);
                let tenant = user("a", "tenants");
                let [first, second] = [(); 2].map(|()| Arc::<SeatTimes>::default());
                let arrive = |times| flow.arrive_request(FlowRequest::new(attributes(&tenant)).seat_times(times));
                let permit = block_on(arrive(&first)).expect("a permit");
                let waits = arrive(&second);
                let finish = thread::spawn(move || drop(permit));
                let arrives_later = {
                    let flow = flow.clone();
                    thread::spawn(move || {
                        clock.advance(Duration::from_secs(1));
                        drop(admit(&flow, "b"));
                    })
                };
                finish.join().unwrap();
                arrives_later.join().unwrap();
                drop(block_on(waits).expect("a permit"));
                assert_eq!(second.started(), first.ended(), "with {borrowing} borrowing");
                assert_idle(&flow);
            },
            ORDERS,
        );
    }
}

#[test]
fn giving_up_while_being_started_passes_the_seat_on() {
    shuttle::check_random(
        || {
            let (flow, _clock) = one_seat();
            let permit = block_on(admit(&flow, "a")).expect("a permit");
            let mut gives_up = Box::pin(admit(&flow, "b"));
            assert!(poll_once(gives_up.as_mut()).is_pending());
            let waits = admit(&flow, "c");
            let threads = [
                thread::spawn(move || drop(permit)),
                thread::spawn(move || drop(gives_up)),
                thread::spawn(move || drop(block_on(waits).expect("a permit"))),
            ];
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_idle(&flow);
        },
        ORDERS,
    );
}

#[test]
fn a_time_out_and_a_start_exclude_each_other() {
    shuttle::check_random(
        || {
            let (flow, clock) = one_seat();
            let permit = block_on(admit(&flow, "a")).expect("a permit");
            let waits = admit(&flow, "b");
            clock.advance(Duration::from_secs(20));
            let finish = thread::spawn(move || drop(permit));
            let waited = {
                let flow = flow.clone();
                thread::spawn(move || {
                    let mut waits = pin!(waits);
                    let Poll::Ready(result) = poll_once(waits.as_mut()) else { panic!("its time is over") };
                    match &result {
                        Ok(_) => assert_eq!(totals(&flow), (0, 1)),
                        Err(rejected) => assert_eq!(rejected.reason, Rejection::TimeOut),
                    }
                    assert!(poll_once(waits.as_mut()).is_pending(), "it has ended already");
                })
            };
            finish.join().unwrap();
            waited.join().unwrap();
            assert_idle(&flow);
        },
        ORDERS,
    );
}

#[test]
fn a_level_is_never_removed_under_a_request_and_never_forgotten() {
    shuttle::check_random(
        || {
            let (flow, _clock) = one_seat();
            let apply = {
                let flow = flow.clone();
                thread::spawn(move || flow.apply(objects([])).unwrap())
            };
            let request = {
                let flow = flow.clone();
                thread::spawn(move || {
                    let permit = block_on(admit(&flow, "a")).expect("a permit");
                    assert_eq!(totals(&flow), (0, 1), "it runs in a level that is gone: {permit:?}");
                })
            };
            apply.join().unwrap();
            request.join().unwrap();
            flow.tick();
            assert_eq!(level_names(&flow), ["catch-all", "exempt"]);
            assert_idle(&flow);
        },
        ORDERS,
    );
}

#[test]
fn a_scrape_disturbs_nobody_and_every_request_is_counted_once() {
    shuttle::check_random(
        || {
            let (flow, _clock) = one_seat();
            let run = |name: &'static str, flow: FlowControl| {
                // While its level is away, there is only one that lets nobody wait.
                thread::spawn(move || drop(block_on(admit(&flow, name))))
            };
            let scrape = {
                let flow = flow.clone();
                thread::spawn(move || drop(flow.shared().sample_metrics()))
            };
            let threads = ["a", "b"].map(|name| run(name, flow.clone()));
            // The level goes and comes back, or stays: either way its numbers go on.
            flow.apply(objects([])).unwrap();
            flow.apply(objects([queuing("tenants", 1000)])).unwrap();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            scrape.join().unwrap();
            let (levels, _) = flow.shared().sample_metrics();
            let numbers = || levels.iter().flat_map(|level| level.series.iter().map(|series| series.numbers));
            let ends = |now: u64, rejected: [u64; 5]| now + rejected.iter().sum::<u64>();
            assert_eq!(numbers().map(|now| ends(now.dispatched, now.rejected)).sum::<u64>(), 2);
            assert!(numbers().all(|now| (now.waiting, now.executing, now.executing_seats) == (0, 0, 0)));
            assert_idle(&flow);
        },
        ORDERS,
    );
}

/// A service of two levels with a seat each, which they lend to each other at once.
fn two_levels() -> FlowControl {
    let nothing = FlowControl::builder().kubernetes().objects(evenkeel_engine::controller::Objects::default());
    let flow = nothing.borrowing(Borrowing::Immediate).server_concurrency(2).manual_clock(ManualClock::new()).build();
    flow.apply(objects(["tenants", "people"].map(lending))).expect("valid objects");
    flow
}

/// A level that lends all its seats.
fn lending(name: &str) -> PriorityLevelConfiguration {
    let mut level = queuing(name, 1000);
    level.spec.limited.as_mut().expect("a limited level").lendable_percent = Some(100);
    level
}

fn admit_to(flow: &FlowControl, level: &str) -> Arrived {
    flow.arrive(attributes(&user("a", level)), WorkEstimate::ONE_SEAT)
}

#[test]
fn lb_8_a_seat_of_one_level_starts_a_request_that_waits_in_another() {
    shuttle::check_random(
        || {
            let flow = two_levels();
            let run = |level: &'static str, flow: FlowControl| {
                thread::spawn(move || {
                    let permit = block_on(admit_to(&flow, level)).expect("a permit");
                    let (_, running) = totals(&flow);
                    assert!(running <= 2, "{running} run on two seats");
                    drop(permit);
                })
            };
            let threads = ["tenants", "tenants", "people", "tenants"].map(|level| run(level, flow.clone()));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_idle(&flow);
            assert_all_seats_are_free(&flow);
        },
        ORDERS,
    );
}

#[test]
fn lb_8_giving_up_while_a_seat_is_on_its_way_passes_it_on() {
    shuttle::check_random(
        || {
            let flow = two_levels();
            let permits = ["tenants", "tenants"].map(|level| block_on(admit_to(&flow, level)).expect("a permit"));
            let mut gives_up = Box::pin(admit_to(&flow, "people"));
            assert!(poll_once(gives_up.as_mut()).is_pending());
            let waits = ["people", "tenants"].map(|level| admit_to(&flow, level));
            let mut threads = vec![thread::spawn(move || drop(gives_up))];
            threads.extend(permits.map(|permit| thread::spawn(move || drop(permit))));
            threads.extend(waits.map(|waits| thread::spawn(move || drop(block_on(waits).expect("a permit")))));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_idle(&flow);
            assert_all_seats_are_free(&flow);
        },
        ORDERS,
    );
}

#[test]
fn bm_3_the_way_of_borrowing_changes_while_seats_are_handed_over() {
    shuttle::check_random(
        || {
            let flow = two_levels();
            let change = {
                let flow = flow.clone();
                thread::spawn(move || {
                    flow.set_borrowing(Borrowing::Periodic);
                    flow.set_borrowing(Borrowing::Immediate);
                })
            };
            let run = |level: &'static str, flow: FlowControl| {
                thread::spawn(move || drop(block_on(admit_to(&flow, level)).expect("a permit")))
            };
            let threads = ["tenants", "people", "tenants"].map(|level| run(level, flow.clone()));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            change.join().unwrap();
            assert_idle(&flow);
            assert_all_seats_are_free(&flow);
        },
        ORDERS,
    );
}

#[test]
fn lb_7_seats_change_and_exempt_requests_come_while_seats_are_handed_over() {
    shuttle::check_random(
        || {
            let flow = two_levels();
            let change = {
                let flow = flow.clone();
                thread::spawn(move || {
                    flow.set_server_concurrency(1);
                    flow.set_server_concurrency(2);
                })
            };
            let exempt = {
                let flow = flow.clone();
                thread::spawn(move || {
                    let master = evenkeel_engine::User::new("root", ["system:masters"]);
                    drop(block_on(flow.arrive(attributes(&master), WorkEstimate::ONE_SEAT)).expect("a permit"));
                })
            };
            let run = |level: &'static str, flow: FlowControl| {
                thread::spawn(move || drop(block_on(admit_to(&flow, level)).expect("a permit")))
            };
            let threads = ["tenants", "people", "people"].map(|level| run(level, flow.clone()));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            change.join().unwrap();
            exempt.join().unwrap();
            assert_idle(&flow);
            assert_all_seats_are_free(&flow);
        },
        ORDERS,
    );
}

/// Both levels could have both seats: the ledger has lost none.
fn assert_all_seats_are_free(flow: &FlowControl) {
    let of_levels = flow.status().into_iter().filter(|level| level.name == "tenants" || level.name == "people");
    let seats: Vec<_> = of_levels.map(|level| level.current_limit).collect();
    let all = seats.iter().copied().max().unwrap_or_default();
    assert!(all >= 2 && seats.iter().all(|seats| *seats == all), "{seats:?}");
}

/// Whoever reads the numbers finds in them whatever has happened before, and in the order in which it happened, whichever thread hands
/// the events on.
#[test]
fn numbers_have_what_their_reader_has_seen_and_events_are_in_order() {
    shuttle::check_random(
        || {
            let (flow, _clock) = one_seat();
            let told = Arc::new(std::sync::Mutex::new(Vec::new()));
            let kept = Arc::clone(&told);
            flow.listen(move |_, name: &str| {
                let (is_tenants, kept) = (name == "tenants", Arc::clone(&kept));
                move |events: &[control::events::Event]| {
                    if is_tenants {
                        kept.lock().unwrap().extend(events.iter().map(|event| (event.at, event.level.executing)));
                    }
                }
            });
            let run = |flow: FlowControl, rounds: u64| {
                thread::spawn(move || {
                    for round in 1..=rounds {
                        drop(block_on(admit(&flow, "a")).expect("a permit"));
                        let reading = flow.reading();
                        let level = reading.level("tenants").expect("it is there");
                        assert!(level.dispatched >= round && level.executions.counts.iter().sum::<u64>() >= round);
                    }
                })
            };
            let threads = [run(flow.clone(), 3), run(flow.clone(), 3)];
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            flow.deliver_events();
            let told = told.lock().unwrap();
            assert!(told.is_sorted_by_key(|(at, _)| *at));
            assert!(told.iter().all(|(_, executing)| *executing <= 1));
        },
        ORDERS,
    );
}
