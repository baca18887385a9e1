//! The dumps of a flight recorder: their requests as those of a log, and whether their own objects decide the same again (FR-3, FR-4).

use std::borrow::Cow;
use std::sync::Arc;

use evenkeel::flight::{Flight, FlightEnd, FlightRecord};
use evenkeel_api::Preset;
use evenkeel_api::decode::{Manifest, Problems, Strictness};
use evenkeel_engine::controller::{ADJUSTMENT_PERIOD, Borrowing, Objects};
use evenkeel_engine::queue_set::Rejection;
use evenkeel_engine::time::{Instant, Nanos, SECOND};
use evenkeel_engine::{Classification, User};
use evenkeel_sim::{End, NewRequest, Outcome as SimOutcome, ServerSettings, Simulator};

use crate::logged_head::LoggedHead;
use crate::record::{Action, Outcome, Placed, Record, Stage};

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
}

/// Longer than any request takes.
const UNKNOWN_SERVICE: Nanos = 24 * 3600 * SECOND;

/// The preset of the server that made a dump.
pub fn preset_of(flight: &Flight) -> Preset {
    flight.header.preset.parse().unwrap_or_default()
}

/// How its levels borrowed.
pub fn borrowing_of(flight: &Flight) -> Borrowing {
    if flight.header.borrowing == "periodic" { Borrowing::Periodic } else { Borrowing::Immediate }
}

/// The objects in effect when a dump was made.
pub fn objects_of(flight: &Flight) -> Result<Objects, Problems> {
    let mut objects = Objects::default();
    for object in &flight.header.objects {
        let text = object.to_string();
        let manifest =
            Manifest::read_for(preset_of(flight), "objects of the dump", text.as_bytes(), Strictness::Lenient)?;
        for entry in manifest.entries {
            match entry.object {
                evenkeel_api::AnyObject::FlowSchema(schema) => objects.flow_schemas.push(Arc::new(schema)),
                evenkeel_api::AnyObject::PriorityLevelConfiguration(level) => {
                    objects.priority_levels.push(Arc::new(level));
                }
            }
        }
    }
    Ok(objects)
}

/// The users of a dump, by the numbers of its requests.
pub(crate) fn users_of(flight: &Flight) -> Vec<Arc<User>> {
    let user = |user: &str, groups: &[String]| Arc::new(User::new(user, groups.iter().map(String::as_str)));
    flight.header.requests.iter().map(|request| user(&request.user, &request.groups)).collect()
}

/// A record of a dump as a line of a log has it.
pub(crate) fn record_of<'a>(flight: &'a Flight, users: &[Arc<User>], record: &FlightRecord) -> Option<Record<'a>> {
    let request = flight.header.requests.get(record.request as usize)?;
    let level = flight.header.levels.get(usize::from(record.level))?;
    // Request number 0 stands for unknown requests.
    let user = users.get(record.request as usize).filter(|_| record.request > 0).cloned();
    let arrived = Instant::from_nanos(flight.header.epoch.saturating_add(record.at));
    let (service, outcome) = match record.end {
        FlightEnd::Finished { ran } => (Some(ran), Outcome::Served),
        FlightEnd::Open { .. } => (None, Outcome::Served),
        FlightEnd::Rejected(reason) => (None, Outcome::Rejected(Some(reason.as_str().into()))),
    };
    let verb = Cow::Borrowed(request.verb.as_str());
    Some(Record {
        id: None,
        stage: Stage::Whole,
        arrived,
        written: arrived,
        wait: Some(record.waited),
        service,
        user,
        action: if request.resource.is_some() {
            Action::Verb(verb)
        } else {
            Action::Method(verb.to_uppercase().into())
        },
        target: Cow::Borrowed(&request.path),
        head: LoggedHead::default(),
        outcome,
        placed: Some(Placed { schema: (&*request.flow_schema).into(), level: level.as_str().into() }),
        seats: Some(record.work.max_seats()),
        // A dump has seats and times only.
        cost: None,
        bytes: None,
    })
}

/// Lets the objects of a dump decide about its requests again, at the same times.
pub fn decide_again(flight: &Flight) -> Result<Agreement, Problems> {
    let first_seats =
        flight.header.changes.iter().find_map(|change| change.seats_before).unwrap_or(flight.header.seats);
    let mut server = ServerSettings::new(first_seats);
    (server.preset, server.borrowing) = (preset_of(flight), borrowing_of(flight));
    server.newcomer_wait = flight.header.newcomer_wait.unwrap_or(server.newcomer_wait);
    let mut simulator: Simulator<usize> = Simulator::new(server, objects_of(flight)?.with_mandatory_levels());
    let mut decided = vec![None; flight.records.len()];
    let mut note = |outcome: SimOutcome<usize>| {
        let result = match outcome.end {
            End::Completed { started, .. } => (started - outcome.arrived, true),
            End::Rejected { .. } | End::TimedOut { .. } => (outcome.ended - outcome.arrived, false),
        };
        if let Some(place) = decided.get_mut(outcome.token) {
            *place = Some(result);
        }
    };
    // Seats are divided from time to time, counted from when the server began.
    let begin =
        flight.records.first().map_or(0, |first| first.at.saturating_sub(first.at.rem_euclid(ADJUSTMENT_PERIOD)));
    let mut changes = flight.header.changes.iter().filter_map(|change| Some((change.at, change.seats?))).peekable();
    let mut unknown = Vec::new();
    for (number, record) in flight.records.iter().enumerate() {
        while let Some((at, seats)) = changes.next_if(|(at, _)| *at <= record.at) {
            simulator.set_seats(at.saturating_sub(begin).max(0), seats, &mut note);
        }
        let schema = flight.header.requests.get(record.request as usize).map_or("", |request| &*request.flow_schema);
        let found = simulator.configuration().schemas().iter().enumerate().find(|(_, one)| &*one.name == schema);
        let Some((index, schema)) = found else {
            unknown.push(number);
            continue;
        };
        let classification = Classification { index, schema, distinguisher: "", flow_hash: record.flow_hash };
        let class = simulator.class_of(&classification).without_wait_limit();
        let service = match record.end {
            FlightEnd::Finished { ran } => ran,
            FlightEnd::Open { .. } => UNKNOWN_SERVICE,
            FlightEnd::Rejected(_) => 0,
        };
        let patience = match record.end {
            FlightEnd::Rejected(Rejection::TimeOut | Rejection::Cancelled) => record.waited,
            _ => record.wait_limit,
        };
        let new = NewRequest::new(number, service, record.work).patience(patience);
        simulator.arrive(record.at.saturating_sub(begin), class, new, &mut note);
    }
    simulator.drain(&mut note);
    Ok(compare(flight, &decided, &unknown))
}

fn compare(flight: &Flight, decided: &[Option<(Nanos, bool)>], unknown: &[usize]) -> Agreement {
    let mut agreement = Agreement::default();
    for (number, (record, decided)) in flight.records.iter().zip(decided).enumerate() {
        let recorded = match record.end {
            // A request that had not ended may have started at the right time, but a simulation that has ended cannot tell.
            FlightEnd::Open { .. } => continue,
            FlightEnd::Finished { .. } => (record.waited, true),
            FlightEnd::Rejected(_) => (record.waited, false),
        };
        if unknown.binary_search(&number).is_ok() {
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
