//! The bars of the engine: what one request costs in a queue set, and what it costs to classify it.

mod requests;

use std::cell::LazyCell;
use std::hint::black_box;

use evenkeel_api::annotations::MATCH_HEADERS;
use evenkeel_api::bootstrap;
use evenkeel_api::v1::FlowSchema;
use evenkeel_bars::{Bar, Bars, Call, called, nanos_per_operation};
use evenkeel_engine::classify::{Classifier, match_order};
use evenkeel_engine::level::{Level, NewRequest};
use evenkeel_engine::queue_set::{Arrival, Mode, NoEffects, QueueSet, QueueSetConfig, RequestId};
use evenkeel_engine::time::{Instant, SECOND};
use evenkeel_engine::{Attributes, KnownHead, WorkEstimate};
use requests::{MORE, Request, SHAPES, Shape, aimed_at, classifier, realistic};

/// How many requests one round makes: enough that reading the clock does not count.
const ROUND: u32 = 10_000;

/// What `cargo xtask bench instructions` counts.
const CALLS: &[Call] =
    &[("engine: admit and finish, uncontended, 64 queues, hand 8", |calls| Uncontended::new(64, 8).pass(calls))];

/// Requests that come one at a time, each of another flow.
struct Uncontended {
    set: QueueSet<()>,
    flows: Flows,
    now: Instant,
}

fn main() {
    if called(CALLS) {
        return;
    }
    let mut bars = Bars::filtered(std::env::args().skip(1));
    queue_set_bars(&mut bars);
    classify_bars(&mut bars);
    bars.measure_instructions(CALLS);
    bars.print("The engine");
}

fn queue_set_bars(bars: &mut Bars) {
    // What others are compared with is measured when the first of them is.
    let one = LazyCell::new(|| uncontended(64, 8));
    bars.measure("admit and finish, uncontended, 64 queues, hand 8", "ns", || (*one, Bar::AtMost(150.0, "ns")));
    bars.measure("the same with 4,096 queues, hand 5 (8 of so many cannot be dealt)", "ns", || {
        (uncontended(4096, 5), Bar::TimesAtMost(1.5, *one))
    });
    bars.measure("the same through a level, with timers and nobody who observes", "ns", || {
        (through_a_level(64, 8), Bar::TimesAtMost(1.1, *one))
    });
    bars.measure("the same with 1,000 requests waiting", "ns", || (waiting(64, 8, 1000), Bar::None));
    bars.measure("the same with 100,000 requests waiting", "ns", || {
        (waiting(64, 8, 100_000), Bar::AtMost(f64::max(150.0, 2.0 * *one), "ns"))
    });
    bars.measure("the same, 4,096 queues, hand 5, and 100,000 waiting", "ns", || {
        (waiting(4096, 5, 100_000), Bar::None)
    });
}

fn classify_bars(bars: &mut Bars) {
    let bootstrap = LazyCell::new(|| classify(Shape::None, &realistic()));
    bars.measure("classify with the bootstrap objects", "ns", || (*bootstrap, Bar::AtMost(150.0, "ns")));
    bars.measure("requests of ten plans, told apart by a header", "ns", || (by_header(), Bar::None));
    for shape in SHAPES.into_iter().filter(|shape| !matches!(shape, Shape::None)) {
        bars.measure(&format!("the same with 1,000 more by {shape:?}"), "ns", || {
            (classify(shape, &realistic()), Bar::TimesAtMost(3.0, *bootstrap))
        });
        bars.measure(&format!("requests for each of the 1,000 by {shape:?}"), "ns", || {
            let aimed: Vec<_> = (0..MORE).map(|number| aimed_at(shape, number * 7 % MORE)).collect();
            (classify(shape, &aimed), Bar::TimesAtMost(3.0, *bootstrap))
        });
    }
}

/// One request at a time, each of another flow.
fn uncontended(queues: i64, hand_size: i64) -> f64 {
    let mut requests = Uncontended::new(queues, hand_size);
    nanos_per_operation(ROUND, || requests.pass(ROUND))
}

/// The same as [`uncontended`], with what a level has around a queue set.
fn through_a_level(queues: i64, hand_size: i64) -> f64 {
    let mut level: Level<()> = Level::new(config(queues, hand_size), Instant::from_nanos(0));
    let mut flows = Flows { state: 1 };
    let mut now = Instant::from_nanos(0);
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            now = now + 1000;
            let new = NewRequest::new(flows.next_hash(), WorkEstimate::ONE_SEAT).wait_until(now + SECOND);
            let Arrival::Started { id, .. } = level.arrive(now, new, (), &mut NoEffects) else {
                panic!("the level has room")
            };
            level.finish(now + 500, id, &mut NoEffects);
        }
    })
}

/// As many requests wait as the argument says: each that finishes starts another, and one more arrives.
fn waiting(queues: i64, hand_size: i64, crowd: usize) -> f64 {
    let mut set = queue_set(queues, hand_size);
    let mut flows = Flows { state: 1 };
    let mut now = Instant::from_nanos(0);
    let mut running: Vec<RequestId> = Vec::new();
    while set.waiting() < crowd {
        let arrival = set.arrive(now, flows.next_hash(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
        if let Arrival::Started { id, .. } = arrival {
            running.push(id);
        }
    }
    let mut turn = 0;
    nanos_per_operation(ROUND, || {
        for _ in 0..ROUND {
            now = now + 1000;
            set.arrive(now, flows.next_hash(), WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            turn = (turn + 1) % running.len();
            let finished = running[turn];
            set.finish(now + 500, finished, &mut |id: RequestId, (): &mut ()| running[turn] = id);
        }
    })
}

fn classify(shape: Shape, requests: &[Request]) -> f64 {
    classify_by(&classifier(shape), requests)
}

/// Requests of ten plans, which ten schemas before all others tell apart by one header; the last one finds its plan after nine others.
fn by_header() -> f64 {
    const PLANS: usize = 10;
    let schema = |number: usize| {
        let builder =
            FlowSchema::builder(format!("plan-{number}")).priority_level("workload-low").matching_precedence(850);
        let mut schema = builder.rule(|r| r.group("system:authenticated").everything()).build();
        let condition = format!("{{\"X-Plan\": \"plan-{number}\"}}");
        schema.metadata.annotations.insert(MATCH_HEADERS.to_owned(), condition);
        schema
    };
    let plans: Vec<_> = (0..PLANS).map(schema).collect();
    let mut schemas: Vec<_> = bootstrap::flow_schemas().iter().chain(&plans).collect();
    schemas.sort_by(|a, b| match_order(a, b));
    let request = |number: usize| {
        let (user, mut request) = aimed_at(Shape::None, 0);
        request.head = KnownHead::default().header("X-Plan", format!("plan-{number}")).into();
        (user, request)
    };
    classify_by(&Classifier::compile(schemas), &(0..PLANS).map(request).collect::<Vec<_>>())
}

fn classify_by(classifier: &Classifier, requests: &[Request]) -> f64 {
    let repeats = ROUND.div_ceil(u32::try_from(requests.len()).expect("a short list"));
    let operations = repeats * u32::try_from(requests.len()).expect("a short list");
    nanos_per_operation(operations, || {
        for _ in 0..repeats {
            for (user, request) in black_box(requests) {
                black_box(classifier.classify(Attributes { user, request }));
            }
        }
    })
}

fn queue_set(queues: i64, hand_size: i64) -> QueueSet<()> {
    QueueSet::new(config(queues, hand_size), Instant::from_nanos(0))
}

fn config(queues: i64, hand_size: i64) -> QueueSetConfig {
    let mode = Mode::queue(queues, hand_size, i64::MAX).expect("a valid deal");
    QueueSetConfig { mode, concurrency_limit: 100 }
}

/// Hashes of many flows, spread as SHA-256 spreads them.
struct Flows {
    state: u64,
}

impl Flows {
    fn next_hash(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

// === impl Uncontended ===

impl Uncontended {
    fn new(queues: i64, hand_size: i64) -> Self {
        Self { set: queue_set(queues, hand_size), flows: Flows { state: 1 }, now: Instant::from_nanos(0) }
    }

    fn pass(&mut self, requests: u32) {
        for _ in 0..requests {
            self.now = self.now + 1000;
            let hash = self.flows.next_hash();
            let arrival = self.set.arrive(self.now, hash, WorkEstimate::ONE_SEAT, (), &mut NoEffects);
            let Arrival::Started { id, .. } = arrival else { panic!("the set has room") };
            self.set.finish(self.now + 500, id, &mut NoEffects);
        }
    }
}
