//! One level under a given load, by `evenkeel-sim`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use evenkeel_api::annotations::{NEWCOMER_SEATS, NewcomerSeats, QUEUING, Queuing};
use evenkeel_api::v1::{FlowSchema, PriorityLevelConfiguration};
use evenkeel_api::{AnyObject, Preset};
use evenkeel_engine::time::{MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Attributes, RequestInfo, User, WorkEstimate};
use evenkeel_sim::{Class, End, NewRequest, Outcome, Outcomes, ServerSettings, Simulator};

use crate::random::Random;

/// A flow: when its requests come, and how long each takes.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) name: String,
    pub(crate) arrivals: Arrivals,
    pub(crate) service: Service,
    pub(crate) weight: u16,
}

/// When requests come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arrivals {
    /// At random times, so many a second on average.
    PerSecond(f64),
    /// One, at that time.
    Once(Nanos),
    /// So many are under way at any time. Who is rejected comes back after 50 ms.
    Outstanding(usize),
}

/// How long a request takes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Service {
    Fixed(Nanos),
    Between(Nanos, Nanos),
    Exponential(Nanos),
    /// The first in 95 of 100 cases, else the second.
    MostlyElse(Nanos, Nanos),
}

/// Who decides what runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Contestant {
    seats: i64,
    queues: Queues,
}

#[derive(Debug, Clone, Copy)]
enum Queues {
    /// One for all, without a limit.
    Fifo,
    /// Shared ones, each with that limit.
    ShuffleSharded(i32),
    /// One for each flow. All of them together have the limit of the shared ones.
    PerFlow(i32, NewcomerSeats),
}

/// What a flow got.
#[derive(Debug, Clone, Default)]
pub(crate) struct Served {
    /// From arrival to the end of each request that ended.
    pub(crate) latencies: Vec<Nanos>,
    /// From arrival to the start of each request that started.
    pub(crate) waits: Vec<Nanos>,
    pub(crate) rejected: usize,
    /// The seat-time that was used in each second.
    pub(crate) seat_time: Vec<Nanos>,
}

/// The clients in a run.
struct Crowd<'a> {
    clients: &'a [Client],
    random: Vec<Random>,
    /// When the next requests come: the time, a number that tells those of the same time apart, and the client.
    arrivals: BinaryHeap<Reverse<(Nanos, u64, usize)>>,
    sequence: u64,
    served: Vec<Served>,
}

/// Whose request it is, and when it arrived.
#[derive(Debug, Clone, Copy)]
struct Token {
    client: usize,
    arrived: Nanos,
}

/// The level, and its flow schema.
pub(crate) const ONE_FOR_ALL: &str = "everyone";
/// More than ever wait.
const NO_LIMIT: i32 = 1_000_000;
/// Who was rejected comes back after this time.
const COMES_BACK: Nanos = 50 * MILLISECOND;

// === impl Client ===

impl Client {
    pub(crate) fn new(name: String, arrivals: Arrivals, service: Service) -> Self {
        Self { name, arrivals, service, weight: 1 }
    }

    pub(crate) fn weight(self, weight: u16) -> Self {
        Self { weight, ..self }
    }

    /// Where its requests belong. Weights are those of clients here, and not of flow schemas, so that all flows are of one schema.
    fn class(&self, simulator: &Simulator<Token>) -> Class {
        let user = User::new(self.name.as_str(), ["system:authenticated"]);
        let request = RequestInfo { path: "/".into(), verb: "get".into(), ..RequestInfo::default() };
        let mut class = simulator.classify(Attributes { user: &user, request: &request });
        class.flow_weight = self.weight;
        class
    }
}

// === impl Service ===

impl Service {
    fn draw(self, random: &mut Random) -> Nanos {
        match self {
            Self::Fixed(span) => span,
            Self::Between(least, most) => random.between(least, most),
            Self::Exponential(mean) => random.exponential(mean),
            Self::MostlyElse(most, rest) => {
                if random.fraction() < 0.95 {
                    most
                } else {
                    rest
                }
            }
        }
    }
}

// === impl Contestant ===

impl Contestant {
    /// One queue for all.
    pub(crate) fn fifo(seats: i64) -> Self {
        Self { seats, queues: Queues::Fifo }
    }

    /// 64 queues that flows share, eight for each.
    pub(crate) fn shuffle_sharded(seats: i64, queue_length_limit: i32) -> Self {
        Self { seats, queues: Queues::ShuffleSharded(queue_length_limit) }
    }

    /// The same limits, with a queue for each flow.
    pub(crate) fn per_flow(seats: i64, queue_length_limit: i32, newcomer_seats: NewcomerSeats) -> Self {
        Self { seats, queues: Queues::PerFlow(queue_length_limit, newcomer_seats) }
    }

    /// Runs the load for that long, and says what each client got.
    pub(crate) fn run(self, clients: &[Client], horizon: Nanos, seed: u64) -> Vec<Served> {
        let mut simulator: Simulator<Token> = self.simulator();
        let classes: Vec<Class> = clients.iter().map(|client| client.class(&simulator)).collect();
        let mut crowd = Crowd::new(clients, horizon, seed);
        loop {
            let next = crowd.arrivals.peek().map(|Reverse((at, ..))| *at).filter(|at| *at <= horizon);
            // What ends when a request arrives ends before it.
            if simulator.step(next.unwrap_or(horizon), &mut crowd) {
                continue;
            }
            let Some(Reverse((at, _, client))) = next.and_then(|_| crowd.arrivals.pop()) else { break };
            crowd.schedule_after(at, client);
            let new = NewRequest::new(Token { client, arrived: at }, 0, WorkEstimate::ONE_SEAT);
            simulator.arrive(at, classes[client], new, &mut crowd);
        }
        crowd.served
    }

    /// A server whose only level that anything reaches has all the seats.
    pub(crate) fn simulator<T: Copy>(self) -> Simulator<T> {
        let (queues, hand_size, length) = match self.queues {
            Queues::Fifo => (1, 1, NO_LIMIT),
            Queues::ShuffleSharded(length) | Queues::PerFlow(length, _) => (64, 8, length),
        };
        let mut level = PriorityLevelConfiguration::builder(ONE_FOR_ALL).limited(|level| {
            level.shares(100).queue(|queue| queue.queues(queues).hand_size(hand_size).queue_length_limit(length))
        });
        if let Queues::PerFlow(_, newcomer_seats) = self.queues {
            level = level.annotation(QUEUING, Queuing::PerFlow.name());
            level = level.annotation(NEWCOMER_SEATS, newcomer_seats.to_string());
        }
        let schema = FlowSchema::builder(ONE_FOR_ALL).priority_level(ONE_FOR_ALL).by_user();
        let schema = schema.rule(|rule| rule.group("*").everything());
        let objects = [AnyObject::from(level.build()), AnyObject::from(schema.build())];
        let mut settings = ServerSettings::new(self.seats);
        settings.preset = Preset::Plain;
        let simulator = Simulator::new(settings, objects.into_iter().collect());
        let level = simulator.levels().iter().find(|level| level.name() == ONE_FOR_ALL).expect("its level");
        assert_eq!((level.limits().min, level.limits().nominal), (self.seats, self.seats), "it has all seats for ever");
        simulator
    }
}

// === impl Crowd ===

impl<'a> Crowd<'a> {
    fn new(clients: &'a [Client], horizon: Nanos, seed: u64) -> Self {
        let seconds = usize::try_from(horizon / SECOND + 1).expect("a short run");
        let served = vec![Served { seat_time: vec![0; seconds], ..Served::default() }; clients.len()];
        let random = (0..).map(|number| Random::new(seed ^ (number << 32))).take(clients.len()).collect();
        let mut run = Self { clients, random, arrivals: BinaryHeap::new(), sequence: 0, served };
        for (client, Client { arrivals, .. }) in clients.iter().enumerate() {
            match *arrivals {
                Arrivals::PerSecond(_) => run.schedule_after(0, client),
                Arrivals::Once(at) => run.schedule(at, client),
                Arrivals::Outstanding(count) => {
                    for _ in 0..count {
                        let at = run.random[client].between(0, 50 * MILLISECOND);
                        run.schedule(at, client);
                    }
                }
            }
        }
        run
    }

    fn schedule(&mut self, at: Nanos, client: usize) {
        self.sequence += 1;
        self.arrivals.push(Reverse((at, self.sequence, client)));
    }

    /// Schedules the request that follows one of that time whatever becomes of it, if the client sends at random times.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a span of some milliseconds")]
    fn schedule_after(&mut self, now: Nanos, client: usize) {
        if let Arrivals::PerSecond(rate) = self.clients[client].arrivals {
            let mean = (SECOND as f64 / rate) as Nanos;
            let at = now + self.random[client].exponential(mean);
            self.schedule(at, client);
        }
    }

    /// Schedules the request that takes the place of one that is over, if the client always has some under way.
    fn schedule_instead(&mut self, at: Nanos, client: usize) {
        if let Arrivals::Outstanding(_) = self.clients[client].arrivals {
            self.schedule(at, client);
        }
    }
}

impl Outcomes<Token> for Crowd<'_> {
    fn started(&mut self, now: Nanos, token: &mut Token, _seats: u32) {
        self.served[token.client].waits.push(now - token.arrived);
    }

    fn service(&mut self, token: &mut Token, _service: Nanos) -> Nanos {
        self.clients[token.client].service.draw(&mut self.random[token.client])
    }

    fn ended(&mut self, outcome: Outcome<Token>) {
        let (client, now) = (outcome.token.client, outcome.ended);
        let served = &mut self.served[client];
        let End::Completed { started, .. } = outcome.end else {
            served.rejected += 1;
            return self.schedule_instead(now + COMES_BACK, client);
        };
        served.latencies.push(now - outcome.arrived);
        let mut from = started;
        while from < now {
            let second = from / SECOND;
            let until = now.min((second + 1) * SECOND);
            served.seat_time[usize::try_from(second).expect("time goes on")] += until - from;
            from = until;
        }
        self.schedule_instead(now, client);
    }
}
