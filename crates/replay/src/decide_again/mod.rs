//! `decide_again`: whether the objects of a dump decide the same about its requests again, which proves the recording (FR-4).
//!
//! What a server cannot know in advance is taken from the dump: when requests arrived, how long they ran, what they cost, which seats and
//! charges followed from that, how long timers were late, and how many long-running requests there were. What it decided is decided again: who starts when,
//! who is rejected and why, and whether a request is within the rate of its flow.

mod rates;

use std::collections::HashMap;

use evenkeel::flight::{Flight, FlightEnd, FlightFact, FlightRecord, RateOutcome};
use evenkeel_api::decode::Problems;
use evenkeel_engine::controller::ADJUSTMENT_PERIOD;
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::{Nanos, SECOND};
use evenkeel_engine::{Classification, Ticket};
use evenkeel_sim::{End, NewRequest, Outcome, Outcomes, RunningChange, ServerSettings, Simulator};

use crate::flight::{borrowing_named, borrowing_of, newcomer_wait_of, objects_of, preset_of};
use crate::flight_notes::FlightNotes;
use rates::RateAgain;

/// How much of a dump its own objects decide in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Agreement {
    /// The requests that were decided about again.
    pub requests: u64,
    /// The requests that started or were rejected at the same moment, to the nanosecond.
    pub same: u64,
    /// The place of the first that is different, among the records.
    pub first_difference: Option<usize>,
    /// The requests that had ended but could not be decided about again: their flow schema is not in the dump, or the dump is of a version that does
    /// not have what the decision depends on.
    pub undecided: u64,
}

/// Longer than any request takes.
const UNKNOWN_SERVICE: Nanos = 24 * 3600 * SECOND;

/// How each request started or was rejected: after how long, and whether it started.
struct Decided {
    results: Vec<Option<(Nanos, bool)>>,
    /// What changed when requests ended, right before that.
    last_changes: HashMap<usize, Vec<RunningChange>>,
}

/// Something that happened besides arrivals and ends.
enum Step {
    ServerSeats(i64),
    Borrowing(String),
    NewcomerWait(Nanos),
    Request(usize, RunningChange),
}

/// What happened besides arrivals and ends.
struct Steps {
    by_time: Vec<(Nanos, Step)>,
    last_changes: HashMap<usize, Vec<RunningChange>>,
    /// Requests that change while they run: where they are, once they have arrived.
    tickets: HashMap<usize, Option<Ticket>>,
}

/// How a request is to be decided about.
enum Verdict {
    /// By its level.
    Level,
    /// It did not come to its level, and the same follows from the objects.
    Same,
    Different,
    Undecided,
}

/// Lets the objects of a dump decide about its requests again, at the same times.
pub fn decide_again(flight: &Flight) -> Result<Agreement, Problems> {
    let notes = FlightNotes::new(flight);
    let mut simulator: Simulator<usize> =
        Simulator::new(first_settings(flight), objects_of(flight)?.with_mandatory_levels());
    let rates = rates::decide(flight, &notes, simulator.configuration());
    let Steps { by_time, last_changes, mut tickets } = steps_of(flight);
    let mut steps = by_time.into_iter().peekable();
    let mut decided = Decided { results: vec![None; flight.records.len()], last_changes };
    // Seats are divided from time to time, counted from when the server began.
    let begin =
        flight.records.first().map_or(0, |first| first.at.saturating_sub(first.at.rem_euclid(ADJUSTMENT_PERIOD)));
    let since = |at: Nanos| at.saturating_sub(begin).max(0);
    let (mut undecided, mut different) = (Vec::new(), Vec::new());
    for (number, record) in flight.records.iter().enumerate() {
        // The server changes before a request that arrives at that moment, and requests that run change after it.
        while let Some((at, step)) =
            steps.next_if(|(at, step)| *at < record.at || *at == record.at && step.is_of_server())
        {
            step.take(since(at), &mut simulator, &tickets, &mut decided);
        }
        let schema = flight.header.requests.get(record.request as usize).map_or("", |request| &*request.flow_schema);
        let found = simulator.configuration().schemas().iter().enumerate().find(|(_, one)| &*one.name == schema);
        let Some((index, schema)) = found else {
            undecided.push(number);
            continue;
        };
        let is_long_running = notes.others(number).is_some();
        let max = schema.level.max_long_running;
        let is_one_too_many = notes.others(number).zip(max).is_some_and(|(others, max)| others >= max);
        let classification = Classification { index, schema, distinguisher: "", flow_hash: record.flow_hash };
        let class = simulator.class_of(&classification).as_recorded();
        match verdict(record, number, &notes, rates.get(&number).copied()) {
            Verdict::Level => {}
            Verdict::Same => {
                decided.results[number] = Some((record.waited, false));
                continue;
            }
            Verdict::Different => {
                different.push(number);
                continue;
            }
            Verdict::Undecided => {
                undecided.push(number);
                continue;
            }
        }
        if is_one_too_many {
            decided.results[number] = Some((0, false));
            continue;
        }
        if rates.get(&number) == Some(&RateAgain::Different) {
            // It came to its level, but should have done so at another time.
            different.push(number);
        }
        let service = match record.end {
            FlightEnd::Finished { ran } => ran,
            FlightEnd::Open { .. } => UNKNOWN_SERVICE,
            FlightEnd::Rejected(_) => 0,
        };
        let patience = match record.end {
            FlightEnd::Rejected(Rejection::TimeOut | Rejection::Cancelled) => record.waited,
            // Timers are late, and limits are kept in microseconds.
            _ => record.wait_limit.max(record.waited),
        };
        let new = NewRequest::new(number, service, record.work).patience(patience).long_running(is_long_running);
        simulator.arrive(since(record.at), class, new, &mut decided);
        if let Some(ticket) = tickets.get_mut(&number) {
            *ticket = simulator.entered();
        }
    }
    // What came after everything had ended does not matter.
    let last = flight.records.iter().map(end_of).filter(|end| *end < Nanos::MAX).max().unwrap_or(0);
    for (at, step) in steps.take_while(|(at, _)| *at <= last) {
        step.take(since(at), &mut simulator, &tickets, &mut decided);
    }
    simulator.drain(&mut decided);
    for number in different {
        decided.results[number] = None;
    }
    Ok(compare(flight, &decided.results, &undecided))
}

/// The settings when the dump begins.
fn first_settings(flight: &Flight) -> ServerSettings {
    let changes = || flight.header.changes.iter();
    let seats = changes().find_map(|change| change.seats_before).unwrap_or(flight.header.seats);
    let mut server = ServerSettings::new(seats);
    server.preset = preset_of(flight);
    let borrowing = changes().find_map(|change| change.borrowing.as_ref()).map(|[before, _]| borrowing_named(before));
    server.borrowing = borrowing.unwrap_or(borrowing_of(flight));
    let newcomer_wait = changes().find_map(|change| change.newcomer_wait).map(|[before, _]| before);
    server.newcomer_wait = newcomer_wait.unwrap_or(newcomer_wait_of(flight));
    server
}

fn steps_of(flight: &Flight) -> Steps {
    let (mut by_time, mut last_changes, mut tickets) = (Vec::new(), HashMap::new(), HashMap::new());
    for change in &flight.header.changes {
        let seats = change.seats.map(Step::ServerSeats);
        let borrowing = change.borrowing.as_ref().map(|[_, after]| Step::Borrowing(after.clone()));
        let newcomer_wait = change.newcomer_wait.map(|[_, after]| Step::NewcomerWait(after));
        let all = [seats, borrowing, newcomer_wait].into_iter().flatten();
        by_time.extend(all.map(|step| (change.at, step)));
    }
    for note in &flight.notes {
        let number = note.record as usize;
        let end = flight.records.get(number).map_or(Nanos::MAX, end_of);
        let (at, change) = match note.fact {
            FlightFact::Seats { at, seats } => (at, RunningChange::Seats(seats)),
            FlightFact::Charge { at, seat_time } => (at, RunningChange::Charge(seat_time)),
            FlightFact::Cost { .. } | FlightFact::Rate(_) | FlightFact::LongRunning { .. } => continue,
        };
        if at >= end {
            last_changes.entry(number).or_insert_with(Vec::new).push(change);
        } else {
            tickets.insert(number, None);
            by_time.push((at, Step::Request(number, change)));
        }
    }
    // Of those of one moment, the server's come first.
    by_time.sort_by_key(|(at, step)| (*at, !step.is_of_server()));
    Steps { by_time, last_changes, tickets }
}

/// When a request had ended; the end of time, if it had not.
fn end_of(record: &FlightRecord) -> Nanos {
    let left = record.at.saturating_add(record.waited);
    match record.end {
        FlightEnd::Finished { ran } => left.saturating_add(ran),
        FlightEnd::Rejected(_) => left,
        FlightEnd::Open { .. } => Nanos::MAX,
    }
}

/// `rate`: what the rate of its flow says, if it has been asked.
fn verdict(record: &FlightRecord, number: usize, notes: &FlightNotes<'_>, rate: Option<RateAgain>) -> Verdict {
    let has_left = notes.rate(number).is_some_and(|rate| rate.outcome == RateOutcome::Left);
    let is_over_rate = record.end == FlightEnd::Rejected(Rejection::RateLimit);
    if record.end == FlightEnd::Rejected(Rejection::TooManyLongRunning) && notes.others(number).is_none() {
        return Verdict::Undecided;
    }
    match rate {
        None if is_over_rate => Verdict::Undecided,
        Some(RateAgain::NoRate) => Verdict::Undecided,
        Some(RateAgain::Same) if has_left || is_over_rate => Verdict::Same,
        Some(RateAgain::Different) if has_left || is_over_rate => Verdict::Different,
        None | Some(RateAgain::Same | RateAgain::Different) => Verdict::Level,
    }
}

fn compare(flight: &Flight, decided: &[Option<(Nanos, bool)>], undecided: &[usize]) -> Agreement {
    let mut agreement = Agreement::default();
    for (number, (record, decided)) in flight.records.iter().zip(decided).enumerate() {
        let recorded = match record.end {
            // A request that had not ended may have started at the right time, but a simulation that has ended cannot tell.
            FlightEnd::Open { .. } => continue,
            FlightEnd::Finished { .. } => (record.waited, true),
            FlightEnd::Rejected(_) => (record.waited, false),
        };
        if undecided.binary_search(&number).is_ok() {
            agreement.undecided += 1;
            continue;
        }
        agreement.requests += 1;
        if *decided == Some(recorded) {
            agreement.same += 1;
        } else if agreement.first_difference.is_none() {
            agreement.first_difference = Some(number);
        }
    }
    agreement
}

// === impl Decided ===

impl Outcomes<usize> for Decided {
    fn last_changes(&mut self, token: &mut usize) -> Vec<RunningChange> {
        self.last_changes.remove(token).unwrap_or_default()
    }

    fn ended(&mut self, outcome: Outcome<usize>) {
        let result = match outcome.end {
            End::Completed { started, .. } => (started - outcome.arrived, true),
            End::Rejected { .. } | End::TimedOut { .. } => (outcome.ended - outcome.arrived, false),
        };
        if let Some(place) = self.results.get_mut(outcome.token) {
            *place = Some(result);
        }
    }
}

// === impl Step ===

impl Step {
    fn is_of_server(&self) -> bool {
        !matches!(self, Self::Request(..))
    }

    fn take(
        self,
        at: Nanos,
        simulator: &mut Simulator<usize>,
        tickets: &HashMap<usize, Option<Ticket>>,
        decided: &mut Decided,
    ) {
        let ticket = |number: usize| tickets.get(&number).copied().flatten();
        match self {
            Self::ServerSeats(seats) => simulator.set_seats(at, seats, decided),
            Self::Borrowing(word) => simulator.set_borrowing(at, borrowing_named(&word), decided),
            Self::NewcomerWait(wait) => simulator.set_newcomer_wait(at, wait, decided),
            Self::Request(number, change) => {
                if let Some(ticket) = ticket(number) {
                    simulator.change(at, ticket, change, decided);
                }
            }
        }
    }
}
