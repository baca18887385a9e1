//! Arrivals and events become the records of a dump.

use std::collections::HashMap;

use crate::control::flight::{FlightEnd, FlightRecord};
use evenkeel_engine::queue_set::RequestId;

use super::records::{ArrivalRecord, EventRecord, Happened};
use crate::control::level_names::{LevelKey, LevelNames};

/// The requests of a dump.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// In the order of their times.
    pub(super) records: Vec<FlightRecord>,
    /// The names of levels, by the numbers that records have. Levels of one name have one number.
    pub(super) levels: Vec<String>,
}

// === impl Joined ===

impl Joined {
    /// The requests of these arrivals. Events may come in any order; those of other requests are left out.
    pub(super) fn new(
        mut arrivals: Vec<ArrivalRecord>,
        events: impl Iterator<Item = EventRecord>,
        names: &LevelNames,
    ) -> Self {
        arrivals.sort_by_key(|arrival| arrival.at);
        let mut places: HashMap<(LevelKey, RequestId), usize> = HashMap::with_capacity(arrivals.len());
        let mut numbers: HashMap<LevelKey, u16> = HashMap::new();
        let mut joined = Self { records: Vec::with_capacity(arrivals.len()), levels: Vec::new() };
        for arrival in arrivals {
            if let Ok(id) = arrival.id {
                places.insert((arrival.level, id), joined.records.len());
            }
            let level = arrival.level;
            let level = *numbers.entry(level).or_insert_with(|| number_of(&mut joined.levels, names.name(level)));
            joined.records.push(FlightRecord {
                at: arrival.at.as_nanos(),
                waited: 0,
                end: match arrival.id {
                    Ok(_) => FlightEnd::Open { has_started: false },
                    Err(reason) => FlightEnd::Rejected(reason),
                },
                flow_hash: arrival.flow_hash,
                request: arrival.request,
                level,
                work: arrival.work,
                wait_limit: arrival.wait_limit.max(0),
            });
        }
        for event in events {
            let place = places.get(&(event.level, event.id)).and_then(|place| joined.records.get_mut(*place));
            if let Some(record) = place {
                happened(record, event.what);
            }
        }
        joined
    }
}

fn happened(record: &mut FlightRecord, what: Happened) {
    match what {
        Happened::Started { waited } => {
            record.waited = waited.max(0);
            // Its end may have been read before its start.
            if matches!(record.end, FlightEnd::Open { .. }) {
                record.end = FlightEnd::Open { has_started: true };
            }
        }
        Happened::Finished { ran } => record.end = FlightEnd::Finished { ran: ran.max(0) },
        Happened::GaveUp { waited, reason } => {
            (record.waited, record.end) = (waited.max(0), FlightEnd::Rejected(reason));
        }
    }
}

/// The number of a level of that name.
fn number_of(levels: &mut Vec<String>, name: &str) -> u16 {
    let place = levels.iter().position(|known| known == name).unwrap_or_else(|| {
        levels.push(name.to_owned());
        levels.len() - 1
    });
    u16::try_from(place).unwrap_or(u16::MAX)
}
