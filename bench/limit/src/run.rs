//! One run: requests at random times, a level with one queue, and what came of it in each tenth of a second.

use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_api::{AnyObject, Preset};
use evenkeel_engine::elementary::{exp, ln};
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_sim::{AutoSettings, End, NewRequest, Outcome, Outcomes, ServerSettings, Simulator};

use crate::environment::{Environment, Steps};

/// How many seats the server has.
#[derive(Debug, Clone)]
pub enum Seats {
    /// So many, which may change at given times.
    Fixed(Steps),
    /// As it finds out.
    Auto(AutoSettings),
}

/// What came of a run.
#[derive(Debug, Default)]
pub struct Record {
    /// Each tenth of a second.
    pub buckets: Vec<Bucket>,
    /// How long requests held their seats, in seconds; not those of the first two seconds.
    pub held: Vec<f64>,
    /// What the limit that finds itself did last, in sentences.
    pub changes: Vec<String>,
}

/// What happened in a tenth of a second. The numbers are of requests.
#[derive(Debug, Clone, Copy, Default)]
pub struct Bucket {
    /// Done within six times the time that they take on an idle service.
    pub good: f64,
    /// Failed by the service.
    pub failed: f64,
    /// Arrived.
    pub arrived: f64,
    /// Waited more than 5 ms for a seat.
    pub delayed: f64,
    /// Got no seat.
    pub rejected: f64,
    /// The limit at the end.
    pub limit: f64,
}

/// Requests, and what comes of them.
struct Crowd<'e> {
    environment: &'e Environment,
    random: fastrand::Rng,
    now: Nanos,
    bucket: Bucket,
    record: Record,
}

/// What is kept with a request.
#[derive(Debug, Clone, Copy)]
struct Token {
    arrived: Nanos,
    /// How long it takes on an idle service, in seconds, at least the average.
    own: f64,
    delay: f64,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Slots(f64),
    Failing(bool),
    Seats(f64),
}

/// The length of a bucket.
const BUCKET: Nanos = 100 * MILLISECOND;

/// How long a request waits for a seat.
const PATIENCE: Nanos = 5 * SECOND;

/// A request that has waited for longer was delayed.
const DELAYED: Nanos = 5 * MILLISECOND;

const LEVEL: &str = "everybody";

/// Runs a server for some seconds.
pub fn run(environment: &Environment, seats: &Seats, span: f64, seed: u64) -> Record {
    let mut settings = ServerSettings::new(1);
    settings.preset = Preset::Plain;
    settings.service = environment.curve;
    settings.service.slots = slots(environment.slots.at(0.0));
    match seats {
        Seats::Fixed(steps) => settings.seats = whole(steps.at(0.0)).into(),
        Seats::Auto(auto) => settings.auto = Some(auto.clone()),
    }
    let mut simulator = Simulator::new(settings, objects().into_iter().collect());
    let (user, request) = (User::new("alice", ["system:authenticated"]), RequestInfo::for_path("get", "/"));
    let class = simulator.classify(Attributes { user: &user, request: &request });
    let random = fastrand::Rng::with_seed(seed);
    let mut crowd = Crowd { environment, random, now: 0, bucket: Bucket::default(), record: Record::default() };
    let mut changes = changes(environment, seats).into_iter().peekable();
    let (end, mut mark, mut arrival) = (nanos(span), BUCKET, crowd.next_arrival(0));
    while mark <= end {
        while let Some((at, change)) = changes.next_if(|(at, _)| *at <= arrival.min(mark)) {
            match change {
                Change::Slots(count) => simulator.set_slots(at, slots(count), &mut crowd),
                Change::Failing(is_failing) => simulator.set_failing(at, is_failing, &mut crowd),
                Change::Seats(seats) => simulator.set_seats(at, whole(seats).into(), &mut crowd),
            }
        }
        if arrival < mark {
            let token = Token { arrived: arrival, own: 0.0, delay: 0.0 };
            let new = NewRequest::new(token, 0, WorkEstimate::ONE_SEAT).patience(PATIENCE);
            simulator.arrive(arrival, class, new, &mut crowd);
            crowd.bucket.arrived += 1.0;
            arrival = crowd.next_arrival(arrival);
        } else {
            simulator.run_until(mark, &mut crowd);
            let limit = simulator.level(class.level).limits().nominal;
            crowd.bucket.limit = f64::from(i32::try_from(limit).unwrap_or(i32::MAX));
            crowd.record.buckets.push(std::mem::take(&mut crowd.bucket));
            mark += BUCKET;
        }
    }
    let mut record = crowd.record;
    if let Some(limit) = simulator.auto_limit() {
        let sentence = |change: &evenkeel_engine::auto_limit::LimitChange| {
            format!("{:9.3} s  {change}", seconds(change.at.as_nanos()))
        };
        record.changes = limit.changes_since(0).map(|(_, change)| sentence(change)).collect();
    }
    record
}

// === impl Crowd ===

impl Crowd<'_> {
    fn next_arrival(&mut self, after: Nanos) -> Nanos {
        let rate = self.environment.load.at(seconds(after)) * self.environment.capacity;
        after + nanos(-ln(1.0 - self.random.f64()) / rate).max(1)
    }

    /// Normally distributed, by the polar method.
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.random.f64() - 1.0, 2.0 * self.random.f64() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

impl Outcomes<Token> for Crowd<'_> {
    fn started(&mut self, now: Nanos, token: &mut Token, _seats: u32) {
        self.now = now;
        self.bucket.delayed += f64::from(u8::from(now - token.arrived > DELAYED));
    }

    fn service(&mut self, token: &mut Token, _service: Nanos) -> Nanos {
        let (now, sigma) = (seconds(self.now), self.environment.sigma);
        let average = self.environment.work.at(now);
        let work = average * exp(sigma * self.normal() - sigma * sigma / 2.0);
        let is_slow = self.random.f64() < self.environment.slow_share;
        token.delay = self.environment.elsewhere.at(now) + if is_slow { 9.0 * average } else { 0.0 };
        token.own = (work + token.delay).max(average);
        nanos(work)
    }

    fn delay(&mut self, token: &mut Token, _delay: Nanos) -> Nanos {
        nanos(token.delay)
    }

    fn ended(&mut self, outcome: Outcome<Token>) {
        match outcome.end {
            End::Completed { has_failed: true, .. } => self.bucket.failed += 1.0,
            End::Completed { started, .. } => {
                let held = seconds(outcome.ended - started);
                self.bucket.good += f64::from(u8::from(held <= 6.0 * outcome.token.own));
                if outcome.ended > 2 * SECOND {
                    self.record.held.push(held);
                }
            }
            End::Rejected { .. } | End::TimedOut { .. } => self.bucket.rejected += 1.0,
        }
    }
}

/// Everything that changes by itself, in the order of time.
fn changes(environment: &Environment, seats: &Seats) -> Vec<(Nanos, Change)> {
    let slots = environment.slots.changes().map(|(at, count)| (nanos(at), Change::Slots(count)));
    let failing = environment.failing.changes().map(|(at, failing)| (nanos(at), Change::Failing(failing > 0.0)));
    let mut changes: Vec<_> = slots.chain(failing).collect();
    if let Seats::Fixed(steps) = seats {
        changes.extend(steps.changes().map(|(at, seats)| (nanos(at), Change::Seats(seats))));
    }
    changes.retain(|(at, _)| *at > 0);
    changes.sort_by_key(|(at, _)| *at);
    changes
}

/// One level that has all seats, with one queue for all.
fn objects() -> [AnyObject; 2] {
    let level = PriorityLevelConfiguration::builder(LEVEL)
        .limited(|level| level.shares(100).queue(|queue| queue.queues(1).hand_size(1).queue_length_limit(1_000_000)));
    let schema = FlowSchema::builder(LEVEL).priority_level(LEVEL).rule(|rule| rule.group("*").everything());
    [level.build().into(), schema.build().into()]
}

fn slots(count: f64) -> Option<u32> {
    (count > 0.0).then(|| whole(count))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
fn whole(number: f64) -> u32 {
    number.round() as u32
}

#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "at most some hours")]
fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND as f64) as Nanos
}

#[expect(clippy::cast_precision_loss, reason = "at most some hours")]
fn seconds(span: Nanos) -> f64 {
    span as f64 / SECOND as f64
}
