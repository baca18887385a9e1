//! `RecordingListener`: writes the events of a level into the recorder.

use std::sync::Arc;

use super::RecorderTap;
use super::records::{EventRecord, Happened};
use super::shared_ring::BlockClaim;
use crate::control::events::{Event, EventKind, Listener};
use crate::control::level_names::LevelKey;

/// Writes the events of a level into the recorder.
pub(super) struct RecordingListener {
    tap: Arc<RecorderTap>,
    level: LevelKey,
    /// The block that it has claimed of a recorder, and the number of the recorder.
    claim: (u64, BlockClaim),
}

// === impl RecordingListener ===

impl RecordingListener {
    pub(super) fn new(tap: &Arc<RecorderTap>, level: LevelKey) -> Self {
        Self { tap: Arc::clone(tap), level, claim: (0, BlockClaim::default()) }
    }
}

impl Listener for RecordingListener {
    fn on_events(&mut self, events: &[Event]) {
        if !self.tap.is_on() {
            return;
        }
        let loaded = self.tap.recorder.load();
        let Some(recorder) = &*loaded else { return };
        let (number, claim) = &mut self.claim;
        if *number != recorder.number {
            (*number, *claim) = (recorder.number, BlockClaim::default());
        }
        for event in events {
            let at = event.at.as_nanos();
            let mut write = |what| {
                let record = EventRecord { id: event.id, level: self.level, what };
                recorder.events.push(claim, at, record.to_words());
            };
            match event.kind {
                EventKind::Finished { ran, .. } => write(Happened::Finished { ran }),
                EventKind::Started { waited, .. } => write(Happened::Started { waited }),
                EventKind::GaveUp { waited, reason, .. } => write(Happened::GaveUp { waited, reason }),
                EventKind::Costed { cost, unit, .. } => write(Happened::Costed { thousandths: cost, unit }),
                EventKind::Resized { .. } => write(Happened::Resized { at, seats: event.seats }),
                EventKind::Charged { seat_time } => {
                    write(Happened::ChargedAt { at });
                    write(Happened::Charged { seat_time });
                }
                _ => {}
            }
        }
    }
}
