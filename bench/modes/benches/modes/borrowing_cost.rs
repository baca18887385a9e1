//! What borrowing at once costs a request that does not wait: in the library, beside borrowing every ten seconds.

use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use evenkeel::{
    Attributes, Borrowing, FlowControl, FlowSchema, Permit, PriorityLevelConfiguration, RequestInfo, User, WorkEstimate,
};
use evenkeel_bars::{Bar, Bars, nanos_per_operation};

/// How many requests one round makes.
const ROUND: u32 = 2_000;
/// The same for each of two threads, which have to be started as well.
const ROUND_OF_TWO: u32 = 20_000;
/// How often both modes are measured in turn: the least of each counts.
const TURNS: usize = 5;

/// Whether the requests are within the floor of their level.
#[derive(Debug, Clone, Copy)]
enum Seats {
    Own,
    BeyondFloor,
}

pub(crate) fn measure(bars: &mut Bars) {
    for (name, seats) in [("within the floor", Seats::Own), ("beyond the floor", Seats::BeyondFloor)] {
        bars.measure(&format!("admit and finish {name}, immediate: more than periodic"), "ns", || {
            (more(seats, by_one), Bar::AtMost(25.0, "ns"))
        });
        bars.measure(&format!("the same {name}, two threads, two levels"), "ns", || {
            (more(seats, |flow| by_two(flow, ["one", "other"])), Bar::AtMost(60.0, "ns"))
        });
        bars.measure(&format!("the same {name}, two threads, one level"), "ns", || {
            (more(seats, |flow| by_two(flow, ["one", "one"])), Bar::AtMost(60.0, "ns"))
        });
    }
}

/// What a request takes longer with immediate borrowing.
fn more(seats: Seats, time: impl Fn(&FlowControl) -> f64) -> f64 {
    let (mut periodic, mut immediate) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..TURNS {
        for (borrowing, least) in [(Borrowing::Periodic, &mut periodic), (Borrowing::Immediate, &mut immediate)] {
            let flow = service(borrowing);
            // The floors are taken, so that all others are beyond them.
            let floors = match seats {
                Seats::Own => Vec::new(),
                Seats::BeyondFloor => {
                    ["one", "other"].map(|level| take_floor(&flow, level)).into_iter().flatten().collect()
                }
            };
            *least = least.min(time(&flow));
            drop(floors);
        }
    }
    immediate - periodic
}

/// Two levels with more seats than anybody asks for.
fn service(borrowing: Borrowing) -> FlowControl {
    let builder = FlowControl::builder().kubernetes().server_concurrency(600).borrowing(borrowing).drive_by_hand();
    ["one", "other"]
        .into_iter()
        .fold(builder, |builder, name| {
            let level = PriorityLevelConfiguration::builder(name)
                .limited(|l| l.shares(1000).lendable_percent(50).queue(|q| q.queues(8).hand_size(1)))
                .build();
            let schema = FlowSchema::builder(name)
                .priority_level(name)
                .by_user()
                .rule(|r| r.group(name).non_resource_urls(["*"]).verbs(["*"]))
                .build();
            builder.objects(level).objects(schema)
        })
        .build()
}

/// Requests that take the floor of a level: a half of its seats.
fn take_floor(flow: &FlowControl, level: &str) -> Vec<Permit> {
    let (user, request) = (User::new("busy", [level]), request());
    let floor = flow.status().into_iter().find(|found| found.name == level).map_or(0, |found| found.limits.min);
    (0..floor).map(|_| admitted(flow, &user, &request)).collect()
}

fn admit(flow: &FlowControl, user: &User, request: &RequestInfo<'_>) {
    drop(black_box(admitted(flow, user, request)));
}

fn admitted(flow: &FlowControl, user: &User, request: &RequestInfo<'_>) -> Permit {
    let admit = flow.admit(Attributes { user, request }, WorkEstimate::ONE_SEAT);
    let Poll::Ready(permit) = pin!(admit).poll(&mut Context::from_waker(Waker::noop())) else { panic!("it waits") };
    permit.expect("a seat")
}

fn request() -> RequestInfo<'static> {
    RequestInfo { verb: "get".into(), path: "/".into(), ..RequestInfo::default() }
}

fn by_one(flow: &FlowControl) -> f64 {
    let (user, request) = (User::new("a", ["one"]), request());
    nanos_per_operation(ROUND, || (0..ROUND).for_each(|_| admit(flow, &user, &request)))
}

/// The time that a request takes while two threads make them: that of both, divided by the requests of each.
fn by_two(flow: &FlowControl, levels: [&str; 2]) -> f64 {
    let (users, request) = (levels.map(|level| User::new(level, [level])), request());
    nanos_per_operation(ROUND_OF_TWO, || {
        std::thread::scope(|scope| {
            for user in &users {
                scope.spawn(|| (0..ROUND_OF_TWO).for_each(|_| admit(flow, user, &request)));
            }
        });
    })
}
