//! Random events for a queue set, and the indexed queue set driven by them.
//!
//! Requests go by the order in which they arrived, those that were rejected included; that number is also their
//! payload.

mod strategy;

pub(crate) use strategy::{Weather, scripts};

use evenkeel_engine::WorkEstimate;
use evenkeel_engine::queue_set::{Arrival, Effects, Finish, Phase, QueueSet, QueueSetConfig, Rejection, RequestId};
use evenkeel_engine::time::{Instant, Nanos};

/// A queue set and what happens to it.
#[derive(Debug, Clone)]
pub(crate) struct Script {
    pub(crate) config: QueueSetConfig,
    pub(crate) steps: Vec<Step>,
}

/// So long after the step before, this happens.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) after: Nanos,
    pub(crate) event: Event,
}

/// What happens. The number of an end picks one of the requests that can end in that way.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Arrive {
        hash: u64,
        work: WorkEstimate,
    },
    Finish(usize),
    Release(usize),
    Cancel(usize),
    /// Any request at all, also one that cannot finish, is released or cancelled like this.
    Stale(End, usize),
    /// One of the requests that run is charged that much more.
    Charge(usize, Nanos),
    /// One of the requests that run has so many seats from now on.
    SetSeats(usize, u32),
    Configure(QueueSetConfig),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    Finish,
    Release,
    Cancel,
}

/// An event that names its request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Action {
    Arrive { hash: u64, work: WorkEstimate },
    End(End, usize),
    Charge(usize, Nanos),
    SetSeats(usize, u32),
    Configure(QueueSetConfig),
}

/// How an event ended.
#[derive(Debug, PartialEq)]
pub(crate) enum Outcome {
    Started { queue: Option<usize> },
    Waiting { queue: usize },
    Rejected { reason: Rejection, queue: Option<usize> },
    Lingering { until: Instant },
    Ended,
    Changed,
    Configured,
    Nothing,
}

/// What an event brought about besides.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SideEffects {
    pub(crate) started: Vec<usize>,
    pub(crate) blocked: Vec<usize>,
    pub(crate) epochs: Vec<bool>,
}

/// The indexed queue set, with a ledger of its requests that is kept from what it says.
pub(crate) struct Driven {
    pub(crate) set: QueueSet<usize>,
    pub(crate) now: Instant,
    /// Of each request: its name, unless it was rejected, and what it is doing, unless it has ended.
    pub(crate) ledger: Vec<(Option<RequestId>, Option<Phase>)>,
}

impl Driven {
    pub(crate) fn new(config: QueueSetConfig) -> Self {
        let now = Instant::from_nanos(0);
        Self { set: QueueSet::new(config, now), now, ledger: Vec::new() }
    }

    /// The event with the name of its request, if there is one that it can happen to.
    pub(crate) fn resolve(&self, event: &Event) -> Option<Action> {
        Some(match *event {
            Event::Arrive { hash, work } => Action::Arrive { hash, work },
            Event::Finish(pick) => Action::End(End::Finish, self.pick(Phase::Executing, pick)?),
            Event::Release(pick) => Action::End(End::Release, self.pick(Phase::Lingering, pick)?),
            Event::Cancel(pick) => Action::End(End::Cancel, self.pick(Phase::Waiting, pick)?),
            Event::Stale(end, pick) => {
                let number = pick.checked_rem(self.ledger.len())?;
                self.ledger[number].0.map(|_| Action::End(end, number))?
            }
            Event::Charge(pick, seat_time) => Action::Charge(self.pick(Phase::Executing, pick)?, seat_time),
            Event::SetSeats(pick, seats) => Action::SetSeats(self.pick(Phase::Executing, pick)?, seats),
            Event::Configure(config) => Action::Configure(config),
        })
    }

    /// One of the requests that are in a phase.
    pub(crate) fn pick(&self, phase: Phase, pick: usize) -> Option<usize> {
        let candidates = || (0..self.ledger.len()).filter(|&number| self.ledger[number].1 == Some(phase));
        candidates().nth(pick.checked_rem(candidates().count())?)
    }

    /// Lets it happen so long after the last event. What changes nothing takes no time.
    pub(crate) fn apply(&mut self, after: Nanos, action: Action) -> (Outcome, SideEffects) {
        let before = self.now;
        self.now = before + after;
        let now = self.now;
        let mut told = SideEffects::default();
        let outcome = match action {
            Action::Arrive { hash, work } => self.arrive(hash, work, &mut told),
            Action::End(end, number) => {
                let id = self.ledger[number].0.expect("a request that was taken in");
                let (outcome, payload) = match end {
                    End::Finish => match self.set.finish(now, id, &mut told) {
                        Some(Finish::Released(payload)) => (Outcome::Ended, Some(payload)),
                        Some(Finish::Lingering { until }) => (Outcome::Lingering { until }, None),
                        None => (Outcome::Nothing, None),
                    },
                    End::Release => ended(self.set.release(now, id, &mut told)),
                    End::Cancel => ended(self.set.cancel(now, id, &mut told)),
                };
                self.note_end(end, number, &outcome, payload);
                if outcome == Outcome::Nothing {
                    self.now = before;
                }
                outcome
            }
            Action::Charge(number, seat_time) => {
                let id = self.ledger[number].0.expect("a request that was taken in");
                assert!(self.set.charge(now, id, seat_time, &mut told), "request {number} runs");
                Outcome::Changed
            }
            Action::SetSeats(number, seats) => {
                let id = self.ledger[number].0.expect("a request that was taken in");
                let held = self.set.request(id).map(|request| request.work.max_seats()).filter(|&held| held > 0);
                assert_eq!(self.set.set_seats(now, id, seats, &mut told), held, "request {number} runs");
                if held.is_none() {
                    self.now = before;
                }
                if held.is_some() { Outcome::Changed } else { Outcome::Nothing }
            }
            Action::Configure(config) => {
                self.set.configure(now, config, &mut told);
                Outcome::Configured
            }
        };
        for &number in &told.started {
            assert_eq!(self.ledger[number].1, Some(Phase::Waiting), "request {number} starts");
            self.ledger[number].1 = Some(Phase::Executing);
        }
        (outcome, told)
    }

    fn arrive(&mut self, hash: u64, work: WorkEstimate, told: &mut SideEffects) -> Outcome {
        let number = self.ledger.len();
        let (entry, outcome) = match self.set.arrive(self.now, hash, work, number, told) {
            // Starts are noted when they are told.
            Arrival::Started { id, queue } => ((Some(id), Some(Phase::Waiting)), Outcome::Started { queue }),
            Arrival::Waiting { id, queue } => ((Some(id), Some(Phase::Waiting)), Outcome::Waiting { queue }),
            Arrival::Rejected { reason, queue, payload } => {
                assert_eq!(payload, number, "the payload of a request that is rejected");
                ((None, None), Outcome::Rejected { reason, queue })
            }
        };
        assert_eq!(matches!(outcome, Outcome::Started { .. }), told.started.contains(&number));
        self.ledger.push(entry);
        outcome
    }

    /// Every request ends once, in the way that goes with what it is doing, and its own payload comes back.
    fn note_end(&mut self, end: End, number: usize, outcome: &Outcome, payload: Option<usize>) {
        let phase = &mut self.ledger[number].1;
        let can_end = match end {
            End::Finish => *phase == Some(Phase::Executing),
            End::Release => *phase == Some(Phase::Lingering),
            End::Cancel => *phase == Some(Phase::Waiting),
        };
        assert_eq!(*outcome != Outcome::Nothing, can_end, "request {number} is {phase:?}");
        match outcome {
            Outcome::Ended => {
                assert_eq!(payload, Some(number), "the payload of a request that ended");
                *phase = None;
            }
            Outcome::Lingering { .. } => *phase = Some(Phase::Lingering),
            _ => {}
        }
    }
}

fn ended(payload: Option<usize>) -> (Outcome, Option<usize>) {
    (if payload.is_some() { Outcome::Ended } else { Outcome::Nothing }, payload)
}

impl Effects<usize> for SideEffects {
    fn started(&mut self, _id: RequestId, payload: &mut usize) {
        self.started.push(*payload);
    }

    fn blocked(&mut self, payload: &usize) {
        self.blocked.push(*payload);
    }

    fn epoch_advanced(&mut self, clean: bool) {
        self.epochs.push(clean);
    }
}
