//! Clients that send their next request when the last one is done, on a clock of their own.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::level::{Level, NewRequest};
use evenkeel_engine::queue_set::{Arrival, Effects, QueueSetConfig, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

/// One flow: so many threads, each of which makes so many calls one after the other.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) hash: u64,
    pub(crate) threads: usize,
    pub(crate) calls: usize,
    /// How long a request executes.
    pub(crate) exec: Range<Nanos>,
    /// How long a thread pauses between its requests, and after one that was rejected.
    pub(crate) think: Range<Nanos>,
    /// What the requests are like, one as often as the other.
    pub(crate) works: Vec<WorkEstimate>,
}

/// What a client got until the horizon.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Served {
    /// Initial seats times the time that they were held by executing requests.
    pub(crate) seat_nanos: i128,
    pub(crate) rejected: usize,
    /// How many requests have started until the horizon, and how long they had waited together.
    pub(crate) started: usize,
    pub(crate) wait_nanos: i128,
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) clients: Vec<Served>,
    pub(crate) epoch_advances: usize,
}

/// Runs all clients until they have made all their calls, or until the horizon if they would make more.
pub(crate) struct ClosedLoop {
    clients: Vec<Client>,
    horizon: Nanos,
    level: Level<Call>,
    todo: BinaryHeap<Reverse<(Nanos, u64, Todo)>>,
    todos: u64,
    random: u64,
    told: LevelEffects,
    report: Report,
}

/// A request: whose it is, and how many calls its thread has left after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    client: usize,
    calls_left: usize,
    initial_seats: u32,
    arrived: Nanos,
    started: Nanos,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Todo {
    Call {
        client: usize,
        calls_left: usize,
    },
    /// The request in that slot finishes.
    Finish(usize),
}

#[derive(Default)]
struct LevelEffects {
    started: Vec<RequestId>,
    epoch_advances: usize,
    /// The names of requests, by slot.
    names: Vec<Option<RequestId>>,
}

impl ClosedLoop {
    pub(crate) fn new(config: QueueSetConfig, clients: Vec<Client>, horizon: Nanos, seed: u64) -> Self {
        let report = Report { clients: vec![Served::default(); clients.len()], epoch_advances: 0 };
        let level = Level::new(config, Instant::from_nanos(0));
        let told = LevelEffects::default();
        Self { clients, horizon, level, todo: BinaryHeap::new(), todos: 0, random: seed | 1, told, report }
    }

    /// Thread `j` of client `i` starts at `90·j + 20·i` ns. The run ends when the clients do, or `overtime` after the
    /// horizon.
    pub(crate) fn run(mut self, overtime: Nanos) -> Report {
        let threads: Vec<_> = self.clients.iter().map(|client| (client.threads, client.calls)).collect();
        for (client, (threads, calls)) in (0..).zip(threads) {
            for thread in (0..).take(threads) {
                let todo = Todo::Call { client: usize::try_from(client).expect("a small number"), calls_left: calls };
                self.plan(90 * thread + 20 * client, todo);
            }
        }
        while let Some(now) = self.next_time().filter(|now| now - self.horizon <= overtime) {
            self.level.handle_timeout(Instant::from_nanos(now), &mut self.told);
            self.start_all(now);
            if self.todo.peek().is_some_and(|Reverse((at, ..))| *at == now)
                && let Some(Reverse((_, _, todo))) = self.todo.pop()
            {
                self.step(now, todo);
                self.start_all(now);
            }
        }
        self.report.epoch_advances = self.told.epoch_advances;
        self.report
    }

    /// When something happens next, by the clients or by the timers of the level.
    fn next_time(&mut self) -> Option<Nanos> {
        let todo = self.todo.peek().map(|Reverse((at, ..))| *at);
        todo.into_iter().chain(self.level.next_timeout().map(Instant::as_nanos)).min()
    }

    fn start_all(&mut self, now: Nanos) {
        for id in std::mem::take(&mut self.told.started) {
            self.start(now, id);
        }
    }

    fn step(&mut self, now: Nanos, todo: Todo) {
        let at = Instant::from_nanos(now);
        match todo {
            Todo::Call { calls_left: 0, .. } => {}
            Todo::Call { client, calls_left } => self.call(now, client, calls_left - 1),
            Todo::Finish(slot) => {
                let id = self.told.names[slot].expect("a request that executes");
                let call = *self.level.queue_set().request(id).expect("a request that executes").payload;
                self.level.finish(at, id, &mut self.told).expect("a request that executes");
                let served = i128::from(now.min(self.horizon) - call.started.min(self.horizon));
                self.report.clients[call.client].seat_nanos += served * i128::from(call.initial_seats);
                self.think(now, call.client, call.calls_left);
            }
        }
    }

    fn call(&mut self, now: Nanos, client: usize, calls_left: usize) {
        let pick = usize::try_from(self.random_below(self.clients[client].works.len() as u64)).expect("a small number");
        let work = self.clients[client].works[pick];
        let call = Call { client, calls_left, initial_seats: work.initial_seats, arrived: now, started: 0 };
        let hash = self.clients[client].hash;
        let arrival = self.level.arrive(Instant::from_nanos(now), NewRequest::new(hash, work), call, &mut self.told);
        if matches!(arrival, Arrival::Rejected { .. }) {
            self.report.clients[client].rejected += 1;
            self.think(now, client, calls_left);
        }
    }

    fn start(&mut self, now: Nanos, id: RequestId) {
        let call = self.level.payload_mut(id).expect("a request that has just started");
        call.started = now;
        if now <= self.horizon {
            let served = &mut self.report.clients[call.client];
            served.started += 1;
            served.wait_nanos += i128::from(now - call.arrived);
        }
        let exec = self.clients[call.client].exec.clone();
        if self.told.names.len() <= id.slot() {
            self.told.names.resize(id.slot() + 1, None);
        }
        self.told.names[id.slot()] = Some(id);
        let span = self.random_in(exec);
        self.plan(now + span, Todo::Finish(id.slot()));
    }

    fn think(&mut self, now: Nanos, client: usize, calls_left: usize) {
        let span = self.random_in(self.clients[client].think.clone());
        self.plan(now + span, Todo::Call { client, calls_left });
    }

    fn plan(&mut self, at: Nanos, todo: Todo) {
        self.todos += 1;
        self.todo.push(Reverse((at, self.todos, todo)));
    }

    fn random_in(&mut self, range: Range<Nanos>) -> Nanos {
        let width = u64::try_from(range.end - range.start).expect("a range that is not empty");
        range.start + i64::try_from(self.random_below(width)).expect("a small number")
    }

    fn random_below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }
}

impl Effects<Call> for LevelEffects {
    fn started(&mut self, id: RequestId, _call: &mut Call) {
        self.started.push(id);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        assert!(clean, "no reading goes below zero");
        self.epoch_advances += 1;
    }
}
