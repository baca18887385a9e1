//! A server of several levels under a given load, by `evenkeel-sim`: the levels that a Kubernetes API starts with, or one FIFO queue for
//! all.

use std::collections::VecDeque;

use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_engine::limits::LevelLimits;
use evenkeel_engine::time::Nanos;
use evenkeel_engine::{Classification, Ticket, WorkEstimate};
use evenkeel_sim::{Class, End, NewRequest, Outcome, Outcomes, ServerSettings, Simulator};

use crate::one_level::{Contestant, ONE_FOR_ALL};
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
    scheme: Scheme,
    simulator: Simulator<usize>,
    /// Of the levels, whether or not they decide.
    limits: Vec<(String, LevelLimits)>,
    /// Where the requests of each load go.
    classes: Vec<Class>,
    /// The phases of all loads that are still to come: when, whose, and how many requests are wanted.
    phases: VecDeque<(Nanos, usize, usize)>,
    wanted: Vec<usize>,
    under_way: Vec<usize>,
    /// Those that waited when they arrived, by load. Some have started since.
    waiting: Vec<Vec<Ticket>>,
    requests: Requests,
}

/// The requests of all loads. A token is the number of the load.
struct Requests {
    loads: Vec<Load>,
    random: Random,
    in_use: Vec<i64>,
    /// The loads of which a request has ended in the last event.
    ended: Vec<usize>,
}

const SEATS: i64 = 600;

// === impl Server ===

impl Server {
    pub(crate) fn new(scheme: Scheme, loads: Vec<Load>) -> Self {
        let levels = |borrowing| {
            let mut settings = ServerSettings::new(SEATS);
            settings.borrowing = borrowing;
            Simulator::new(settings, Objects::bootstrap())
        };
        let by_levels = levels(Borrowing::Periodic);
        let limits = by_levels.levels().iter().map(|level| (level.name().to_owned(), level.limits())).collect();
        let simulator = match scheme {
            Scheme::Fifo => Contestant::fifo(SEATS).simulator(),
            Scheme::Levels(borrowing) => levels(borrowing),
        };
        let classes = loads.iter().map(|load| scheme.class(&simulator, load.level)).collect();
        let phases = loads
            .iter()
            .enumerate()
            .flat_map(|(number, load)| load.phases.iter().map(move |(at, wanted)| (*at, number, *wanted)));
        let mut phases: Vec<_> = phases.collect();
        phases.sort_unstable();
        let count = loads.len();
        Self {
            scheme,
            simulator,
            limits,
            classes,
            phases: phases.into(),
            wanted: vec![0; count],
            under_way: vec![0; count],
            waiting: vec![Vec::new(); count],
            requests: Requests { loads, random: Random::new(7), in_use: vec![0; count], ended: Vec::new() },
        }
    }

    /// The time of the last event.
    pub(crate) fn now(&self) -> Nanos {
        self.simulator.now()
    }

    /// Runs up to that time, and shows the server after every event.
    pub(crate) fn run_until(&mut self, end: Nanos, mut look: impl FnMut(&Self)) {
        loop {
            let phase = self.phases.front().copied().filter(|(at, ..)| *at <= end);
            if self.simulator.step(phase.map_or(end, |(at, ..)| at), &mut self.requests) {
                for load in std::mem::take(&mut self.requests.ended) {
                    self.under_way[load] -= 1;
                    if self.under_way[load] < self.wanted[load] {
                        self.arrive(self.now(), load);
                    }
                }
            } else if let Some((at, load, wanted)) = phase {
                self.phases.pop_front();
                self.change(at, load, wanted);
            } else {
                return;
            }
            look(self);
        }
    }

    /// The seats that a level uses.
    pub(crate) fn in_use(&self, level: &str) -> i64 {
        let loads = self.requests.loads.iter().zip(&self.requests.in_use).filter(|(load, _)| load.level == level);
        loads.map(|(_, seats)| seats).sum()
    }

    /// The seats that a level has of its own.
    pub(crate) fn nominal(&self, level: &str) -> i64 {
        self.limits.iter().find(|(name, _)| name == level).map_or(0, |(_, limits)| limits.nominal)
    }

    /// The seats that the requests there are could use if only floors of other levels were kept from them.
    pub(crate) fn usable_by_loads(&self) -> i64 {
        let demand = |name: &str| {
            let loads = self.requests.loads.iter().zip(&self.under_way).filter(|(load, _)| load.level == name);
            i64::try_from(loads.map(|(_, count)| count).sum::<usize>()).expect("a small number")
        };
        let all: i64 = self.limits.iter().map(|(_, limits)| limits.nominal).sum();
        let kept: i64 = self.limits.iter().map(|(name, limits)| (limits.min - demand(name)).max(0)).sum();
        self.limits.iter().map(|(name, _)| demand(name)).sum::<i64>().min(all - kept)
    }

    fn change(&mut self, now: Nanos, load: usize, wanted: usize) {
        self.wanted[load] = wanted;
        while self.under_way[load] < wanted {
            self.arrive(now, load);
        }
        for ticket in std::mem::take(&mut self.waiting[load]).into_iter().rev() {
            if self.under_way[load] > wanted && self.simulator.cancel(now, ticket, &mut self.requests).is_some() {
                self.under_way[load] -= 1;
            }
        }
    }

    fn arrive(&mut self, now: Nanos, load: usize) {
        self.under_way[load] += 1;
        let mut class = self.classes[load];
        if self.scheme != Scheme::Fifo {
            class.flow_hash = self.requests.random.next();
        }
        // How long it takes is drawn when it starts.
        let new = NewRequest::new(load, 0, WorkEstimate::ONE_SEAT);
        let ticket = self.simulator.arrive(now, class, new, &mut self.requests);
        self.waiting[load].extend(ticket);
    }
}

// === impl Scheme ===

impl Scheme {
    /// The class of a request of a level.
    fn class(self, simulator: &Simulator<usize>, level: &str) -> Class {
        let schemas = simulator.configuration().schemas();
        let level = if self == Self::Fifo { ONE_FOR_ALL } else { level };
        let index = schemas.iter().position(|schema| *schema.level.name == *level).expect("a schema of the level");
        let schema = &schemas[index];
        simulator.class_of(&Classification { index, schema, distinguisher: "", flow_hash: 0 })
    }
}

// === impl Requests ===

impl Outcomes<usize> for Requests {
    fn started(&mut self, _now: Nanos, load: &mut usize, _seats: u32) {
        self.in_use[*load] += 1;
    }

    fn service(&mut self, load: &mut usize, _service: Nanos) -> Nanos {
        self.random.exponential(self.loads[*load].mean).max(1)
    }

    fn ended(&mut self, outcome: Outcome<usize>) {
        let load = outcome.token;
        let End::Completed { .. } = outcome.end else {
            panic!("the queues of {} are long enough", self.loads[load].level);
        };
        self.in_use[load] -= 1;
        self.ended.push(load);
    }
}
