//! A shadow stays within 64 MB, however many requests, flows, levels and threads there are (SH-2).

use std::thread;

use evenkeel::clock::ManualClock;
use evenkeel::request::Arrived;
use evenkeel::{Attributes, FlowControl, RequestInfo, User, WorkEstimate};
use evenkeel_counting_allocator::{Counting, counted};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const BYTES_MAX: i64 = 64 << 20;
const THREADS: usize = 16;
const LEVELS: usize = 64;
/// More than any list of the shadow has room for.
const REQUESTS: usize = 80_000;

fn objects() -> String {
    let levels: Vec<String> = (0..LEVELS).map(|level| format!("  l{level}: {{share: 1, queue: 50}}\n")).collect();
    let matches: Vec<String> =
        (0..LEVELS).map(|level| format!("- {{path: /{level}/*, level: l{level}, rate: '1000000/s'}}\n")).collect();
    format!("levels:\n{}match:\n{}- {{level: l0}}\n", levels.concat(), matches.concat())
}

fn arrive(flow: &FlowControl, number: usize) -> Arrived {
    let user = User::new(format!("user-{}", number % 5000), [""; 0]);
    let path = format!("/{}/a", number % LEVELS);
    let request = RequestInfo::for_path("get", &path);
    flow.arrive(Attributes { user: &user, request: &request }, WorkEstimate::ONE_SEAT)
}

/// Many requests that stay, and then more than the shadow can read, of all threads.
fn load(has_shadow: bool) -> (FlowControl, Vec<Arrived>) {
    let clock = ManualClock::new();
    let flow = FlowControl::builder().server_concurrency(1_000_000).objects(objects().as_str());
    let flow = flow.manual_clock(clock.clone()).build();
    if has_shadow {
        flow.shadow(objects().as_str()).expect("valid objects");
    }
    let mut open = Vec::with_capacity(REQUESTS);
    for number in 0..REQUESTS {
        clock.advance(std::time::Duration::from_micros(10));
        open.push(arrive(&flow, number));
        if number % 500 == 0 {
            drop(flow.shadow_report());
        }
    }
    thread::scope(|scope| {
        for part in 0..THREADS {
            let flow = &flow;
            scope.spawn(move || (0..10_000).for_each(|number| drop(arrive(flow, number * THREADS + part))));
        }
    });
    (flow, open)
}

/// One test, so that nobody else allocates.
#[test]
fn sh_2_a_shadow_stays_within_its_memory() {
    let (without, _, bytes_without) = counted(|| load(false));
    drop(without);
    let ((flow, open), _, bytes_with) = counted(|| load(true));
    let held = bytes_with - bytes_without;
    println!("the shadow holds {held} bytes");
    assert!(held <= BYTES_MAX, "{held} bytes");
    let report = flow.shadow_report().unwrap();
    assert!(report.dropped > 0 && report.dropped_seconds > 0, "{}", report.summary);
    assert_eq!(open.len(), REQUESTS);
}
