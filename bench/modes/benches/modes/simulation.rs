//! One level under a given load, with a virtual clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use evenkeel_engine::level::{Level, NewRequest};
use evenkeel_engine::queue_set::{Arrival, Effects, Ended, QueueSetConfig, RequestId};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Flow, WorkEstimate};

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
pub(crate) enum Contestant {
    /// One queue for all, without a limit.
    Fifo {
        seats: usize,
    },
    Level(QueueSetConfig),
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

/// A run.
struct Simulation<'a> {
    clients: &'a [Client],
    random: Vec<Random>,
    queue: Queue,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    sequence: u64,
    requests: Vec<Request>,
    served: Vec<Served>,
    horizon: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Arrival { client: usize },
    End { request: usize },
}

#[derive(Debug, Clone, Copy)]
struct Request {
    client: usize,
    arrived: Nanos,
    started: Nanos,
    id: Option<RequestId>,
}

enum Queue {
    Fifo { free: usize, waiting: VecDeque<usize> },
    Level(Box<Level<usize>>),
}

/// What an event has brought about.
#[derive(Default)]
struct Happened {
    started: Vec<(usize, Option<RequestId>)>,
    rejected: Vec<usize>,
}

// === impl Client ===

impl Client {
    pub(crate) fn new(name: String, arrivals: Arrivals, service: Service) -> Self {
        Self { name, arrivals, service, weight: 1 }
    }

    pub(crate) fn weight(self, weight: u16) -> Self {
        Self { weight, ..self }
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
    /// Runs the load for that long, and says what each client got.
    pub(crate) fn run(self, clients: &[Client], horizon: Nanos, seed: u64) -> Vec<Served> {
        let queue = match self {
            Self::Fifo { seats } => Queue::Fifo { free: seats, waiting: VecDeque::new() },
            Self::Level(config) => Queue::Level(Box::new(Level::new(config, Instant::from_nanos(0)))),
        };
        let seconds = usize::try_from(horizon / SECOND + 1).expect("a short run");
        let random = (0..).map(|number| Random::new(seed ^ (number << 32))).take(clients.len()).collect();
        let served = vec![Served { seat_time: vec![0; seconds], ..Served::default() }; clients.len()];
        let (events, requests) = (BinaryHeap::new(), Vec::new());
        let mut run = Simulation { clients, random, queue, events, sequence: 0, requests, served, horizon };
        run.run();
        run.served
    }
}

// === impl Simulation ===

impl Simulation<'_> {
    fn run(&mut self) {
        for (client, Client { arrivals, .. }) in self.clients.iter().enumerate() {
            match *arrivals {
                Arrivals::PerSecond(rate) => self.schedule_next_arrival(0, client, rate),
                Arrivals::Once(at) => self.schedule(at, Event::Arrival { client }),
                Arrivals::Outstanding(count) => {
                    for _ in 0..count {
                        let at = self.random[client].between(0, 50 * MILLISECOND);
                        self.schedule(at, Event::Arrival { client });
                    }
                }
            }
        }
        while let Some(Reverse((now, _, event))) = self.events.pop()
            && now <= self.horizon
        {
            match event {
                Event::Arrival { client } => self.arrive(now, client),
                Event::End { request } => self.end(now, request),
            }
        }
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a span of some milliseconds")]
    fn schedule_next_arrival(&mut self, now: Nanos, client: usize, rate: f64) {
        let mean = (SECOND as f64 / rate) as Nanos;
        let at = now + self.random[client].exponential(mean);
        self.schedule(at, Event::Arrival { client });
    }

    fn arrive(&mut self, now: Nanos, client: usize) {
        if let Arrivals::PerSecond(rate) = self.clients[client].arrivals {
            self.schedule_next_arrival(now, client, rate);
        }
        let request = self.requests.len();
        self.requests.push(Request { client, arrived: now, started: 0, id: None });
        let mut happened = Happened::default();
        let Client { name, weight, .. } = &self.clients[client];
        let flow = Flow::new("everyone", name).with_weight(*weight);
        self.queue.arrive(now, flow, request, &mut happened);
        self.take_over(now, happened);
    }

    fn end(&mut self, now: Nanos, request: usize) {
        let Request { client, arrived, started, id } = self.requests[request];
        let served = &mut self.served[client];
        served.latencies.push(now - arrived);
        let mut from = started;
        while from < now {
            let second = from / SECOND;
            let until = now.min((second + 1) * SECOND);
            served.seat_time[usize::try_from(second).expect("time goes on")] += until - from;
            from = until;
        }
        let mut happened = Happened::default();
        self.queue.end(now, id, &mut happened);
        if matches!(self.clients[client].arrivals, Arrivals::Outstanding(_)) {
            self.schedule(now, Event::Arrival { client });
        }
        self.take_over(now, happened);
    }

    fn take_over(&mut self, now: Nanos, happened: Happened) {
        for (request, id) in happened.started {
            let client = self.requests[request].client;
            (self.requests[request].started, self.requests[request].id) = (now, id);
            self.served[client].waits.push(now - self.requests[request].arrived);
            let service = self.clients[client].service.draw(&mut self.random[client]);
            self.schedule(now + service, Event::End { request });
        }
        for request in happened.rejected {
            let client = self.requests[request].client;
            self.served[client].rejected += 1;
            if matches!(self.clients[client].arrivals, Arrivals::Outstanding(_)) {
                self.schedule(now + 50 * MILLISECOND, Event::Arrival { client });
            }
        }
    }
}

// === impl Queue ===

impl Queue {
    fn arrive(&mut self, now: Nanos, flow: Flow<'_>, request: usize, happened: &mut Happened) {
        match self {
            Self::Fifo { free: 0, waiting } => waiting.push_back(request),
            Self::Fifo { free, .. } => {
                *free -= 1;
                happened.started.push((request, None));
            }
            Self::Level(level) => {
                let new = NewRequest::new(flow, WorkEstimate::ONE_SEAT);
                if let Arrival::Rejected { payload, .. } =
                    level.arrive(Instant::from_nanos(now), new, request, happened)
                {
                    happened.rejected.push(payload);
                }
            }
        }
    }

    fn end(&mut self, now: Nanos, id: Option<RequestId>, happened: &mut Happened) {
        match self {
            Self::Fifo { free, waiting } => match waiting.pop_front() {
                Some(next) => happened.started.push((next, None)),
                None => *free += 1,
            },
            Self::Level(level) => {
                if let Some(id) = id {
                    level.finish(Instant::from_nanos(now), id, happened);
                }
            }
        }
    }
}

// === impl Happened ===

impl Effects<usize> for Happened {
    fn started(&mut self, id: RequestId, request: &mut usize) {
        self.started.push((*request, Some(id)));
    }

    fn displaced(&mut self, ended: Ended<usize>) {
        self.rejected.push(ended.payload);
    }
}
