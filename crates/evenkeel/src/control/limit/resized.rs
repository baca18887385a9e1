//! `ResizedRequests`: the seat-time of requests whose seats change while they run (CO-4).

use std::collections::HashMap;

use evenkeel_engine::queue_set::RequestId;
use evenkeel_engine::time::Nanos;

use crate::control::events::Event;

/// The requests of a level whose seats have changed since they started. There are at most as many as requests run.
#[derive(Debug, Default)]
pub(super) struct ResizedRequests(HashMap<RequestId, SeatChanges>);

/// All changes of the seats of one request.
#[derive(Debug, Clone, Copy, Default)]
struct SeatChanges {
    /// How many more seats it had before these changes.
    fewer: i64,
    /// The same sum, with each change multiplied by the time of the clock at which it happened.
    fewer_times_clock: i128,
}

// === impl ResizedRequests ===

impl ResizedRequests {
    /// A request has the seats of the event from now on, and had others before.
    #[cold]
    pub(super) fn note(&mut self, event: &Event, before: u32) {
        let fewer = i64::from(before) - i64::from(event.seats);
        let changes = self.0.entry(event.id).or_default();
        changes.fewer += fewer;
        changes.fewer_times_clock += i128::from(fewer) * i128::from(event.at.as_nanos());
    }

    /// The seat-time of a request that ends with this event and ran for so long. The request is forgotten.
    #[inline]
    pub(super) fn seat_time(&mut self, end: &Event, ran: Nanos) -> Nanos {
        let seat_time = ran.saturating_mul(end.seats.into());
        if self.0.is_empty() {
            return seat_time;
        }
        seat_time.saturating_add(self.take(end, ran))
    }

    /// How much more seat-time a request used than its last seats for all of its time would be.
    #[cold]
    fn take(&mut self, end: &Event, ran: Nanos) -> Nanos {
        let Some(changes) = self.0.remove(&end.id) else { return 0 };
        let started = i128::from(end.at.as_nanos()) - i128::from(ran);
        // Each change counts for the time from the start until it happened.
        let more = changes.fewer_times_clock - i128::from(changes.fewer) * started;
        Nanos::try_from(more).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use evenkeel_engine::time::Instant;

    use super::*;
    use crate::control::events::{EventKind, EventSubject, LevelNumbers, RunEnd};

    /// CO-4, AL-11: seats that change count for as long as each of them was held.
    #[test]
    fn co_4_each_number_of_seats_counts_for_its_own_time() {
        let (mut resized, id) = (ResizedRequests::default(), RequestId::NONE);
        let event = |at, seats, kind| {
            Event::new(Instant::from_nanos(at), EventSubject { id, series: 0, seats }, kind, LevelNumbers::default())
        };
        let end = |at, seats, ran| {
            event(at, seats, EventKind::Finished { ran, lingers: false, is_watch: false, end: RunEnd::Done })
        };
        assert_eq!(resized.seat_time(&end(1100, 3, 100), 100), 300, "nothing has changed");
        // One seat for 100, four for 50, two for 30.
        resized.note(&event(1100, 4, EventKind::Resized { before: 1 }), 1);
        resized.note(&event(1150, 2, EventKind::Resized { before: 4 }), 4);
        assert_eq!(resized.seat_time(&end(1180, 2, 180), 180), 100 + 200 + 60);
        assert!(resized.0.is_empty(), "it is forgotten");
    }
}
