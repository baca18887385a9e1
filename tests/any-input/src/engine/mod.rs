//! The engine: whatever happens to it, in whatever order and at whatever times, its sums are right and every payload
//! comes back at most once.

mod bytes;
mod objects;

use bytes::Bytes;
use evenkeel_engine::level::NewRequest;
use evenkeel_engine::queue_set::{Arrival, Ended, Finish, Phase};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};
use evenkeel_engine::{Attributes, Engine, EngineEffects, LevelId, RequestInfo, Ticket, User, WorkEstimate};

/// More events than this tell nothing new, and take long.
const EVENTS_MAX: usize = 2000;
/// Looking at everything after every event would take long.
const EVENTS_BETWEEN_CHECKS: usize = 16;

/// An engine, and what is known of its requests from what it has said.
struct EngineRun<'a> {
    input: Bytes<'a>,
    engine: Engine<usize>,
    now: Nanos,
    /// All levels that there have ever been.
    levels: Vec<LevelId>,
    /// The requests that were taken in, by their payloads.
    requests: Vec<(Ticket, RequestState)>,
    arrived: usize,
}

/// What a request is doing, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestState {
    In(Phase),
    Ended,
}

/// What time has brought about: requests that started, and requests whose time was over.
#[derive(Default)]
struct Timeouts {
    started: Vec<Ticket>,
    ended: Vec<(Ticket, usize, Phase)>,
}

/// Reads the bytes as a server and a sequence of events, and lets them happen.
///
/// # Panics
/// If the engine does, or if its sums are wrong, or if a payload comes back that should not.
pub fn engine(input: &[u8]) {
    let mut input = Bytes::new(input);
    let now = input.number();
    let engine = Engine::new(input.number(), Instant::from_nanos(now));
    let mut run = EngineRun { input, engine, now, levels: Vec::new(), requests: Vec::new(), arrived: 0 };
    run.note_levels();
    for number in 0..EVENTS_MAX {
        if run.input.is_empty() {
            break;
        }
        run.step();
        if number % EVENTS_BETWEEN_CHECKS == 0 {
            run.check();
        }
    }
    run.check();
}

impl EngineRun<'_> {
    fn step(&mut self) {
        self.pass_time();
        let mut started = Vec::new();
        let now = Instant::from_nanos(self.now);
        match self.input.byte() % 16 {
            0..=5 => self.arrive(&mut started),
            6 | 7 => self.finish(Some(Phase::Executing), &mut started),
            8 => self.release(Some(Phase::Lingering), &mut started),
            9 => self.cancel(Some(Phase::Waiting), &mut started),
            10 => match self.input.byte() % 3 {
                0 => self.finish(None, &mut started),
                1 => self.release(None, &mut started),
                _ => self.cancel(None, &mut started),
            },
            11 => {
                let objects = objects::objects(&mut self.input);
                let (levels, schemas) = (objects.priority_levels.len(), objects.flow_schemas.len());
                let report = self.engine.apply(objects, now, &mut |ticket, _: &mut usize| started.push(ticket));
                assert_eq!(report.dangling.len(), schemas);
                assert!(report.unusable.len() <= levels);
                self.note_levels();
            }
            12 => match self.input.byte() % 4 {
                0 => {
                    let seats = self.input.number();
                    self.engine.set_server_limit(seats, now, &mut |ticket, _: &mut usize| started.push(ticket));
                    assert_eq!(self.engine.controller().server_limit(), seats.max(0));
                    self.note_levels();
                }
                1 => self.engine.adjust(now, &mut |ticket, _: &mut usize| started.push(ticket)),
                _ => started = self.handle_timeout(),
            },
            13 => {
                self.engine.reapply(now, &mut |ticket, _: &mut usize| started.push(ticket));
                assert!(!self.engine.wants_reapply());
                self.note_levels();
            }
            14 => {
                let (level, second) = (self.level(), self.input.number());
                assert!(self.engine.retry_after(level, second) >= 1);
            }
            _ => self.classify(),
        }
        for ticket in started {
            let number = *self.engine.payload_mut(ticket).expect("a request that starts is there");
            // The request that has just arrived is entered when its arrival is over.
            if let Some((entered, known)) = self.requests.get_mut(number) {
                assert_eq!(*entered, ticket, "request {number} starts under another name");
                assert_eq!(*known, RequestState::In(Phase::Waiting), "request {number} starts");
                *known = RequestState::In(Phase::Executing);
            }
        }
    }

    /// Time goes on a little, or is suddenly anything at all.
    fn pass_time(&mut self) {
        self.now = match self.input.byte() {
            small @ 0..=159 => self.now.saturating_add(i64::from(small) * MILLISECOND / 8),
            large @ 160..=239 => self.now.saturating_add(i64::from(large - 159) * SECOND),
            _ => self.input.number(),
        };
    }

    fn arrive(&mut self, started: &mut Vec<Ticket>) {
        let level = self.level();
        let hash = u64::from(self.input.byte()) << (self.input.byte() % 57);
        let work = self.work();
        let number = self.requests.len();
        let now = Instant::from_nanos(self.now);
        let mut note = |ticket, _: &mut usize| started.push(ticket);
        let mut new = NewRequest::new(hash, work);
        if let patience @ 1.. = self.input.byte() {
            new = new.wait_until(now + i64::from(patience) * SECOND / 8);
        }
        match self.engine.arrive(now, level, new, number, &mut note) {
            Some(Arrival::Started { id, .. } | Arrival::Waiting { id, .. }) => {
                self.arrived += 1;
                self.requests.push((Ticket { level, id }, RequestState::In(Phase::Waiting)));
            }
            Some(Arrival::Rejected { payload, .. }) => assert_eq!(payload, number),
            None => assert!(self.engine.levels().all(|view| view.control.id() != level), "a level that is there"),
        }
    }

    fn finish(&mut self, phase: Option<Phase>, started: &mut Vec<Ticket>) {
        let Some((number, ticket)) = self.pick(phase) else { return };
        let mut note = |ticket, _: &mut usize| started.push(ticket);
        match self.engine.finish(Instant::from_nanos(self.now), ticket, &mut note) {
            Some(Finish::Released(payload)) => self.end(number, payload, Phase::Executing),
            Some(Finish::Lingering { .. }) => {
                assert_eq!(self.requests[number].1, RequestState::In(Phase::Executing));
                self.requests[number].1 = RequestState::In(Phase::Lingering);
            }
            None => self.assert_not(number, Phase::Executing),
        }
    }

    fn release(&mut self, phase: Option<Phase>, started: &mut Vec<Ticket>) {
        let Some((number, ticket)) = self.pick(phase) else { return };
        let mut note = |ticket, _: &mut usize| started.push(ticket);
        match self.engine.release(Instant::from_nanos(self.now), ticket, &mut note) {
            Some(payload) => self.end(number, payload, Phase::Lingering),
            None => self.assert_not(number, Phase::Lingering),
        }
    }

    fn cancel(&mut self, phase: Option<Phase>, started: &mut Vec<Ticket>) {
        let Some((number, ticket)) = self.pick(phase) else { return };
        let mut note = |ticket, _: &mut usize| started.push(ticket);
        match self.engine.cancel(Instant::from_nanos(self.now), ticket, &mut note) {
            Some(payload) => self.end(number, payload, Phase::Waiting),
            None => self.assert_not(number, Phase::Waiting),
        }
        assert!(started.is_empty(), "nothing starts when a request gives up");
    }

    /// Time brings about what is due, and nothing else.
    fn handle_timeout(&mut self) -> Vec<Ticket> {
        let now = Instant::from_nanos(self.now);
        let mut timeouts = Timeouts::default();
        self.engine.handle_timeout(now, &mut timeouts);
        self.note_levels();
        // At the end of time, everything is always due.
        let is_later = |next| next > now || self.now == Nanos::MAX;
        assert!(self.engine.next_timeout().is_none_or(is_later), "something is still due");
        for (ticket, number, phase) in timeouts.ended {
            assert_eq!(self.requests[number].0, ticket, "request {number} ends under another name");
            assert_ne!(phase, Phase::Executing);
            self.end(number, number, phase);
        }
        timeouts.started
    }

    fn classify(&mut self) {
        let (user, verb, path) = (self.input.text(), self.input.text(), self.input.text());
        let user = User::new(user, [self.input.text()]);
        let is_resource_request = self.input.byte().is_multiple_of(2);
        let request =
            RequestInfo { is_resource_request, verb: verb.into(), path: path.into(), ..RequestInfo::default() };
        let level = self.engine.classify(Attributes { user: &user, request: &request }).schema.level.id;
        assert!(
            self.engine.levels().any(|view| view.control.id() == level),
            "a request belongs to a level that is there"
        );
    }

    /// A payload has come back: that of the request that was named, for the first time, from the phase that it was in.
    fn end(&mut self, number: usize, payload: usize, phase: Phase) {
        assert_eq!(payload, number, "another payload came back");
        assert_eq!(self.requests[number].1, RequestState::In(phase), "request {number} ends");
        self.requests[number].1 = RequestState::Ended;
    }

    /// An end that changed nothing: the request is doing something else, or its level is gone.
    fn assert_not(&self, number: usize, phase: Phase) {
        let (ticket, known) = self.requests[number];
        let is_there = self.engine.levels().any(|view| view.control.id() == ticket.level);
        assert!(known != RequestState::In(phase) || !is_there, "request {number} is {known:?} and cannot be found");
    }

    fn pick(&mut self, phase: Option<Phase>) -> Option<(usize, Ticket)> {
        let pick = usize::from(self.input.byte());
        let is_wanted = |known: RequestState| phase.is_none_or(|phase| known == RequestState::In(phase));
        let wanted = || self.requests.iter().enumerate().filter(|(_, (_, known))| is_wanted(*known));
        let (number, (ticket, _)) = wanted().nth(pick.checked_rem(wanted().count())?)?;
        Some((number, *ticket))
    }

    fn level(&mut self) -> LevelId {
        self.levels[usize::from(self.input.byte()) % self.levels.len()]
    }

    fn work(&mut self) -> WorkEstimate {
        match self.input.byte() {
            0..=99 => WorkEstimate::ONE_SEAT,
            seats @ 100..=159 => WorkEstimate::seats(u32::from(seats - 100)),
            seats @ 160..=239 => WorkEstimate {
                initial_seats: u32::from(seats % 4),
                final_seats: u32::from(seats / 8 - 20),
                additional_latency: i64::from(self.input.byte()) * MILLISECOND,
            },
            _ => WorkEstimate {
                initial_seats: self.input.seats(),
                final_seats: self.input.seats(),
                additional_latency: self.input.number(),
            },
        }
    }

    fn note_levels(&mut self) {
        for view in self.engine.levels() {
            if !self.levels.contains(&view.control.id()) {
                self.levels.push(view.control.id());
            }
        }
    }

    /// What holds after every event.
    fn check(&self) {
        let mut found = 0;
        for view in self.engine.levels() {
            let set = view.queue_set;
            let count = |phase| set.requests().filter(|request| request.phase == phase).count();
            let in_queues: usize = set.queues().map(|queue| queue.waiting).sum();
            assert_eq!(set.waiting(), in_queues, "{}", view.name);
            assert_eq!((set.waiting(), set.executing()), (count(Phase::Waiting), count(Phase::Executing)));
            let held = set.requests().filter(|request| request.phase != Phase::Waiting);
            let seats: i64 = held.map(|request| i64::from(request.work.max_seats())).sum();
            assert_eq!(set.seats_in_use(), seats, "{}", view.name);
            let wanted: i64 = set.queues().map(|queue| queue.max_seats_waiting).sum();
            assert!(set.seats_waiting() >= wanted, "narrowing only ever adds (FQ-24)");
            assert_eq!(set.concurrency_limit(), view.control.current_limit().max(0));
            for request in set.requests() {
                let (ticket, known) = self.requests[*request.payload];
                assert_eq!(ticket, Ticket { level: view.control.id(), id: request.id });
                assert_eq!(known, RequestState::In(request.phase));
                found += 1;
            }
        }
        let is_there = |level| self.engine.levels().any(|view| view.control.id() == level);
        let known =
            self.requests.iter().filter(|(ticket, known)| *known != RequestState::Ended && is_there(ticket.level));
        assert_eq!(found, known.count(), "a request was lost");
        assert_eq!(self.requests.len(), self.arrived);
        for name in ["exempt", "catch-all"] {
            assert!(self.engine.levels().any(|view| view.name == name), "{name} is always there");
        }
    }
}

impl EngineEffects<usize> for Timeouts {
    fn started(&mut self, ticket: Ticket, _number: &mut usize) {
        self.started.push(ticket);
    }

    fn timed_out(&mut self, level: LevelId, ended: Ended<usize>) {
        self.ended.push((Ticket { level, id: ended.id }, ended.payload, ended.phase));
    }
}
