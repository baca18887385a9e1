//! What the modes cost a request that does not wait, in the library: borrowing at once beside borrowing every ten seconds, and an
//! honest `Retry-After` beside that of Kubernetes.

use std::hint::black_box;
use std::pin::pin;
use std::sync::Barrier;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use evenkeel::division::Borrowing;
use evenkeel::{
    Attributes, FlowControl, FlowSchema, Permit, Preset, PriorityLevelConfiguration, RequestInfo, User, WorkEstimate,
};
use evenkeel_bars::{Bar, Bars};

/// How many requests one round makes.
const ROUND: u32 = 2_000;
/// How many rounds are made of each mode at a time, and how often both modes are measured in turn. The least counts.
const ROUNDS: usize = 40;
const TURNS: usize = 8;

/// Whether the requests are within the floor of their level.
#[derive(Debug, Clone, Copy)]
enum Seats {
    Own,
    BeyondFloor,
}

pub(crate) fn measure(bars: &mut Bars) {
    for (name, seats) in [("within the floor", Seats::Own), ("beyond the floor", Seats::BeyondFloor)] {
        bars.measure(&format!("admit and finish {name}, immediate: more than periodic"), "ns", || {
            (more_by_borrowing(seats, by_one), Bar::AtMost(25.0, "ns"))
        });
        bars.measure(&format!("admit and finish {name}, two threads, two levels: more than periodic"), "ns", || {
            (more_by_borrowing(seats, |flow| by_two(flow, ["one", "other"])), Bar::AtMost(60.0, "ns"))
        });
        bars.measure(&format!("admit and finish {name}, two threads, one level: more than periodic"), "ns", || {
            (more_by_borrowing(seats, |flow| by_two(flow, ["one", "one"])), Bar::AtMost(60.0, "ns"))
        });
    }
    bars.measure("admit and finish, Retry-After by what drains: more than as in Kubernetes", "ns", || {
        let services =
            || [service(Preset::Kubernetes, Borrowing::Periodic), service(Preset::Plain, Borrowing::Periodic)];
        (more(services, by_one), Bar::AtMost(2.0, "ns"))
    });
}

/// What a request takes longer with immediate borrowing.
fn more_by_borrowing(seats: Seats, time: impl Fn(&FlowControl) -> f64) -> f64 {
    let services = || [Borrowing::Periodic, Borrowing::Immediate].map(|mode| service(Preset::Kubernetes, mode));
    let taken = |flow: &FlowControl| {
        // The floors are taken, so that all others are beyond them.
        let floors = match seats {
            Seats::Own => Vec::new(),
            Seats::BeyondFloor => ["one", "other"].map(|level| take_floor(flow, level)).into_iter().flatten().collect(),
        };
        let figure = time(flow);
        drop(floors);
        figure
    };
    more(services, taken)
}

/// What a request takes longer in the second service than in the first. They are measured in turn.
fn more(services: impl Fn() -> [FlowControl; 2], time: impl Fn(&FlowControl) -> f64) -> f64 {
    let mut least = [f64::INFINITY; 2];
    for _ in 0..TURNS {
        // Each time anew: where in memory a service is makes a difference of some nanoseconds.
        for (flow, least) in services().iter().zip(&mut least) {
            *least = least.min(time(flow));
        }
    }
    least[1] - least[0]
}

/// Two levels with more seats than anybody asks for.
fn service(preset: Preset, borrowing: Borrowing) -> FlowControl {
    let builder = FlowControl::builder().preset(preset).server_concurrency(600).borrowing(borrowing).drive_by_hand();
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
    least_of_rounds(|| (0..ROUND).for_each(|_| admit(flow, &user, &request)))
}

/// The time that a request takes while two threads make them: that of both, divided by the requests of each.
fn by_two(flow: &FlowControl, levels: [&str; 2]) -> f64 {
    let (users, request) = (levels.map(|level| User::new(level, [level])), request());
    let (start, end) = (Barrier::new(3), Barrier::new(3));
    std::thread::scope(|scope| {
        for user in &users {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    start.wait();
                    (0..ROUND).for_each(|_| admit(flow, user, &request));
                    end.wait();
                }
            });
        }
        least_of_rounds(|| {
            start.wait();
            end.wait();
        })
    })
}

/// How long one request of a round takes at least, in nanoseconds.
fn least_of_rounds(mut round: impl FnMut()) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        round();
        start.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND)
    });
    rounds.fold(f64::INFINITY, f64::min)
}
