//! A server of several levels under a given load, with a virtual clock: the levels that a Kubernetes API starts with, or one FIFO
//! queue for all.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use evenkeel_engine::controller::{Borrowing, Objects, ServerConfig};
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::Arrival;
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{Engine, Ticket, WorkEstimate};

use crate::random::Random;

/// The load of a level: from some times on, so many requests are under way. What waits when fewer are wanted gives up.
pub(crate) struct Load {
    pub(crate) level: &'static str,
    pub(crate) phases: Vec<(Nanos, usize)>,
    /// How long a request takes on average; the times are exponentially distributed.
    pub(crate) mean: Nanos,
}

/// Who decides what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    /// One queue for all levels.
    Fifo,
    Levels(Borrowing),
}

/// A server with 600 seats.
pub(crate) struct Server {
    pub(crate) now: Nanos,
    /// Decides instead of the engine if it is there.
    fifo: Option<Fifo>,
    engine: Engine<usize>,
    random: Random,
    loads: Vec<Load>,
    wanted: Vec<usize>,
    under_way: Vec<usize>,
    waiting: Vec<Vec<usize>>,
    requests: Vec<Request>,
    events: BinaryHeap<Reverse<(Nanos, u64, Event)>>,
    sequence: u64,
}

#[derive(Debug, Clone, Copy)]
struct Request {
    load: usize,
    ticket: Option<Ticket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    End { request: usize },
    Phase { load: usize, wanted: usize },
    Timeout,
}

/// One queue for all levels.
#[derive(Debug, Default)]
struct Fifo {
    free: usize,
    waiting: VecDeque<usize>,
    /// The seats in use, by load.
    in_use: Vec<i64>,
}

// === impl Server ===

impl Server {
    pub(crate) fn new(scheme: Scheme, loads: Vec<Load>) -> Self {
        let start = Instant::from_nanos(0);
        let (fifo, borrowing) = match scheme {
            Scheme::Fifo => {
                let fifo = Fifo { free: 600, waiting: VecDeque::new(), in_use: vec![0; loads.len()] };
                (Some(fifo), Borrowing::Periodic)
            }
            Scheme::Levels(borrowing) => (None, borrowing),
        };
        let mut engine = Engine::with_config(ServerConfig::new(600).borrowing(borrowing), start);
        engine.apply(Objects::bootstrap(), start, &mut |_: Ticket, _: &mut usize| {});
        let count = loads.len();
        let mut server = Self {
            now: 0,
            fifo,
            engine,
            random: Random::new(7),
            wanted: vec![0; count],
            under_way: vec![0; count],
            waiting: vec![Vec::new(); count],
            requests: Vec::new(),
            events: BinaryHeap::new(),
            sequence: 0,
            loads,
        };
        for load in 0..count {
            for (at, wanted) in server.loads[load].phases.clone() {
                server.schedule(at, Event::Phase { load, wanted });
            }
        }
        server.schedule_timeout();
        server
    }

    /// Runs up to that time, and shows the server after every event.
    pub(crate) fn run_until(&mut self, end: Nanos, mut look: impl FnMut(&Self)) {
        while let Some(&Reverse((at, _, event))) = self.events.peek()
            && at <= end
        {
            self.events.pop();
            self.now = at;
            match event {
                Event::End { request } => self.end(request),
                Event::Phase { load, wanted } => self.change(load, wanted),
                Event::Timeout => {
                    let mut started = Vec::new();
                    let note = &mut |ticket: Ticket, request: &mut usize| started.push((ticket, *request));
                    self.engine.handle_timeout(Instant::from_nanos(self.now), note);
                    self.start(&started);
                    self.schedule_timeout();
                }
            }
            look(self);
        }
    }

    /// The seats that a level uses.
    pub(crate) fn in_use(&self, level: &str) -> i64 {
        if let Some(fifo) = &self.fifo {
            let loads = self.loads.iter().zip(&fifo.in_use).filter(|(load, _)| load.level == level);
            return loads.map(|(_, seats)| seats).sum();
        }
        self.engine.levels().find(|found| found.name == level).map_or(0, |found| found.queue_set.seats_in_use())
    }

    /// The seats that a level has of its own.
    pub(crate) fn nominal(&self, level: &str) -> i64 {
        self.engine.controller().level(level).map_or(0, |found| found.limits().nominal)
    }

    /// The seats that the requests there are could use if only floors of other levels were kept from them.
    pub(crate) fn usable_by_loads(&self) -> i64 {
        let demand = |name: &str| {
            let loads = self.loads.iter().zip(&self.under_way).filter(|(load, _)| load.level == name);
            i64::try_from(loads.map(|(_, count)| count).sum::<usize>()).expect("a small number")
        };
        let levels = || self.engine.controller().levels();
        let all: i64 = levels().map(|(_, level)| level.limits().nominal).sum();
        let kept: i64 = levels().map(|(name, level)| (level.limits().min - demand(name)).max(0)).sum();
        levels().map(|(name, _)| demand(name)).sum::<i64>().min(all - kept)
    }

    fn schedule(&mut self, at: Nanos, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    fn schedule_timeout(&mut self) {
        if let Some(next) = self.engine.next_timeout() {
            self.schedule(next.as_nanos(), Event::Timeout);
        }
    }

    fn change(&mut self, load: usize, wanted: usize) {
        self.wanted[load] = wanted;
        while self.under_way[load] < wanted {
            self.arrive(load);
        }
        if let Some(fifo) = &mut self.fifo {
            let requests = &self.requests;
            while self.under_way[load] > wanted
                && let Some(last) = fifo.waiting.iter().rposition(|&request| requests[request].load == load)
            {
                fifo.waiting.remove(last);
                self.under_way[load] -= 1;
            }
            return;
        }
        for request in std::mem::take(&mut self.waiting[load]).into_iter().rev() {
            let Some(ticket) = self.requests[request].ticket.filter(|_| self.under_way[load] > wanted) else {
                continue;
            };
            let mut started = Vec::new();
            let note = &mut |ticket: Ticket, request: &mut usize| started.push((ticket, *request));
            if self.engine.cancel(Instant::from_nanos(self.now), ticket, note).is_some() {
                self.under_way[load] -= 1;
            }
            self.start(&started);
        }
    }

    fn arrive(&mut self, load: usize) {
        let request = self.requests.len();
        self.requests.push(Request { load, ticket: None });
        self.under_way[load] += 1;
        if let Some(fifo) = &mut self.fifo {
            fifo.waiting.push_back(request);
            self.serve_fifo();
            return;
        }
        let level = self.engine.controller().level(self.loads[load].level).expect("a level").id();
        let new = NewRequest::new(self.random.next(), WorkEstimate::ONE_SEAT);
        let mut started = Vec::new();
        let note = &mut |ticket: Ticket, request: &mut usize| started.push((ticket, *request));
        match self.engine.arrive(Instant::from_nanos(self.now), level, new, request, note) {
            Some(Arrival::Waiting { id, .. }) => {
                self.requests[request].ticket = Some(Ticket { level, id });
                self.waiting[load].push(request);
            }
            Some(Arrival::Started { .. }) => {}
            Some(Arrival::Rejected { .. }) | None => panic!("the queues of {} are long enough", self.loads[load].level),
        }
        self.start(&started);
    }

    fn start(&mut self, started: &[(Ticket, usize)]) {
        for (ticket, request) in started {
            self.requests[*request].ticket = Some(*ticket);
            self.schedule_end(*request);
        }
    }

    /// Starts requests of the FIFO queue while there are seats.
    fn serve_fifo(&mut self) {
        while let Some(fifo) = self.fifo.as_mut().filter(|fifo| fifo.free > 0)
            && let Some(request) = fifo.waiting.pop_front()
        {
            let load = self.requests[request].load;
            fifo.free -= 1;
            fifo.in_use[load] += 1;
            self.schedule_end(request);
        }
    }

    fn schedule_end(&mut self, request: usize) {
        let span = self.random.exponential(self.loads[self.requests[request].load].mean);
        self.schedule(self.now + span.max(1), Event::End { request });
    }

    fn end(&mut self, request: usize) {
        let Request { load, ticket } = self.requests[request];
        self.under_way[load] -= 1;
        if let Some(fifo) = &mut self.fifo {
            fifo.free += 1;
            fifo.in_use[load] -= 1;
            self.serve_fifo();
        } else {
            let mut started = Vec::new();
            let note = &mut |ticket: Ticket, request: &mut usize| started.push((ticket, *request));
            self.engine.finish(Instant::from_nanos(self.now), ticket.expect("it runs"), note);
            self.start(&started);
        }
        if self.under_way[load] < self.wanted[load] {
            self.arrive(load);
        }
    }
}
