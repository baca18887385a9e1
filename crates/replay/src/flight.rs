//! The dumps of a flight recorder: their objects and settings, and their requests as those of a log (FR-3).

use std::borrow::Cow;
use std::sync::Arc;

use evenkeel::events::CostKind;
use evenkeel::flight::{Flight, FlightEnd, FlightRecord};
use evenkeel_api::Preset;
use evenkeel_api::decode::{Manifest, Problems, Strictness};
use evenkeel_engine::User;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_engine::queue_set::NEWCOMER_WAIT;
use evenkeel_engine::time::{Instant, Nanos};

use crate::flight_notes::FlightNotes;
use crate::logged_head::LoggedHead;
use crate::record::{Action, Outcome, Placed, Record, Stage};

/// The preset of the server that made a dump.
pub fn preset_of(flight: &Flight) -> Preset {
    flight.header.preset.parse().unwrap_or_default()
}

/// How its levels borrowed.
pub fn borrowing_of(flight: &Flight) -> Borrowing {
    borrowing_named(&flight.header.borrowing)
}

/// How long newcomers may have had to wait before seats were kept for them; the usual time, if the dump does not say.
pub fn newcomer_wait_of(flight: &Flight) -> Nanos {
    flight.header.newcomer_wait.unwrap_or(NEWCOMER_WAIT)
}

/// How levels borrow by this word of a dump.
pub(crate) fn borrowing_named(word: &str) -> Borrowing {
    if word == "periodic" { Borrowing::Periodic } else { Borrowing::Immediate }
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
pub(crate) fn record_of<'a>(
    flight: &'a Flight,
    users: &[Arc<User>],
    notes: &FlightNotes<'_>,
    (number, record): (usize, &FlightRecord),
) -> Option<Record<'a>> {
    let request = flight.header.requests.get(record.request as usize)?;
    let level = flight.header.levels.get(usize::from(record.level))?;
    // Request number 0 stands for unknown requests.
    let user = users.get(record.request as usize).filter(|_| record.request > 0).cloned();
    let moment = |at| Instant::from_nanos(flight.header.epoch.saturating_add(at));
    // A request that waited for the rate of its flow arrived before it came to its level, and may be decided about by another rate.
    let arrived = notes.arrived(number);
    let cost = notes.cost(number);
    let (service, outcome) = match record.end {
        FlightEnd::Finished { ran } => (Some(ran), Outcome::Served),
        FlightEnd::Open { .. } => (None, Outcome::Served),
        FlightEnd::Rejected(reason) => (None, Outcome::Rejected(Some(reason.as_str().into()))),
    };
    let verb = Cow::Borrowed(request.verb.as_str());
    Some(Record {
        id: None,
        stage: Stage::Whole,
        arrived: moment(arrived),
        written: moment(record.at),
        wait: Some(record.waited.saturating_add(record.at - arrived)),
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
        cost,
        bytes: cost.filter(|(_, unit)| *unit == CostKind::Bytes).map(|(bytes, _)| bytes),
    })
}
