//! Arrivals and events become the records of a dump.

use std::collections::HashMap;

use crate::control::flight::{CHARGE_MAX, FlightEnd, FlightFact, FlightNote, FlightRecord};
use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::Nanos;

use super::notes::ArrivalNote;
use super::records::{ArrivalRecord, EventRecord, Happened};
use crate::control::level_names::{LevelKey, LevelNames};

/// The requests of a dump.
#[derive(Debug, Default)]
pub(super) struct Joined {
    /// In the order of their times.
    pub(super) records: Vec<FlightRecord>,
    /// In the order of the records.
    pub(super) notes: Vec<FlightNote>,
    /// The requests that have not ended, and of which no start was recorded: one that starts when it arrives has no such event.
    pub(super) open: Vec<(LevelKey, RequestId, usize)>,
    /// The names of levels, by the numbers that records have. Levels of one name have one number.
    pub(super) levels: Vec<String>,
}

// === impl Joined ===

impl Joined {
    /// The requests of these arrivals. Events may come in any order; those of other requests are left out.
    pub(super) fn new(
        mut arrivals: Vec<ArrivalRecord>,
        notes: Vec<ArrivalNote>,
        events: impl Iterator<Item = EventRecord>,
        names: &LevelNames,
    ) -> Self {
        arrivals.sort_by_key(|arrival| arrival.at);
        let mut places: HashMap<(LevelKey, RequestId), usize> = HashMap::with_capacity(arrivals.len());
        let mut numbers: HashMap<LevelKey, u16> = HashMap::new();
        let mut rejected: HashMap<u64, usize> = HashMap::new();
        let records = Vec::with_capacity(arrivals.len());
        let mut joined = Self { records, notes: Vec::new(), open: Vec::new(), levels: Vec::new() };
        for arrival in arrivals {
            if let Ok(id) = arrival.id {
                places.insert((arrival.level, id), joined.records.len());
            } else if arrival.number > 0 {
                rejected.insert(arrival.number, joined.records.len());
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
        for ArrivalNote { id, level, fact, .. } in notes {
            let place = match id {
                Ok(id) => places.get(&(level, id)),
                Err(number) => rejected.get(&number),
            };
            if let Some(place) = place {
                joined.note(*place, fact);
            }
        }
        let mut charged_at: HashMap<usize, Nanos> = HashMap::new();
        for event in events {
            let Some(&place) = places.get(&(event.level, event.id)) else { continue };
            match event.what {
                Happened::Costed { thousandths, unit } => joined.note(place, FlightFact::Cost { thousandths, unit }),
                Happened::Resized { at, seats } => joined.note(place, FlightFact::Seats { at, seats }),
                // A level writes both one after the other.
                Happened::ChargedAt { at } => {
                    charged_at.insert(place, at);
                }
                Happened::Charged { seat_time } => {
                    if let Some(at) = charged_at.remove(&place) {
                        let seat_time = seat_time.clamp(-CHARGE_MAX, CHARGE_MAX);
                        joined.note(place, FlightFact::Charge { at, seat_time });
                    }
                }
                what => {
                    if let Some(record) = joined.records.get_mut(place) {
                        happened(record, what);
                    }
                }
            }
        }
        let is_open = |place: usize| {
            joined.records.get(place).is_some_and(|record| record.end == FlightEnd::Open { has_started: false })
        };
        let open = places.into_iter().filter(|(_, place)| is_open(*place));
        joined.open = open.map(|((level, id), place)| (level, id, place)).collect();
        // Those of one request stay in their order.
        joined.notes.sort_by_key(|note| note.record);
        joined
    }

    /// That request has started after so long.
    pub(super) fn start(&mut self, place: usize, waited: Nanos) {
        if let Some(record) = self.records.get_mut(place) {
            happened(record, Happened::Started { waited });
        }
    }

    fn note(&mut self, place: usize, fact: FlightFact) {
        self.notes.extend(u32::try_from(place).ok().map(|record| FlightNote { record, fact }));
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
        // These are notes.
        Happened::Resized { .. } | Happened::ChargedAt { .. } | Happened::Charged { .. } | Happened::Costed { .. } => {}
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
