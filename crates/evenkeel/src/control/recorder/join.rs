//! Arrivals and events become the records of a dump.

use std::collections::HashMap;

use crate::control::flight::{FlightEnd, FlightRecord};
use evenkeel_engine::queue_set::RequestId;

use super::records::{ArrivalRecord, EventRecord, Happened};

/// The requests of these arrivals, in the order of their times. Events of others are left out.
pub(super) fn join(mut arrivals: Vec<ArrivalRecord>, events: impl Iterator<Item = EventRecord>) -> Vec<FlightRecord> {
    arrivals.sort_by_key(|arrival| arrival.at);
    let mut places: HashMap<(u16, RequestId), usize> = HashMap::with_capacity(arrivals.len());
    let mut records: Vec<FlightRecord> = Vec::with_capacity(arrivals.len());
    for arrival in arrivals {
        if let Ok(id) = arrival.id {
            places.insert((arrival.level, id), records.len());
        }
        records.push(FlightRecord {
            at: arrival.at.as_nanos(),
            waited: 0,
            end: match arrival.id {
                Ok(_) => FlightEnd::Open { has_started: false },
                Err(reason) => FlightEnd::Rejected(reason),
            },
            flow_hash: arrival.flow_hash,
            request: arrival.request,
            level: arrival.level,
            work: arrival.work,
            wait_limit: arrival.wait_limit.max(0),
        });
    }
    for event in events {
        let place = places.get(&(event.level, event.id)).and_then(|place| records.get_mut(*place));
        let Some(record) = place else { continue };
        match event.what {
            Happened::Started { waited } => {
                (record.waited, record.end) = (waited.max(0), FlightEnd::Open { has_started: true });
            }
            Happened::Finished { ran } => record.end = FlightEnd::Finished { ran: ran.max(0) },
            Happened::GaveUp { waited, reason } => {
                (record.waited, record.end) = (waited.max(0), FlightEnd::Rejected(reason));
            }
        }
    }
    records
}
