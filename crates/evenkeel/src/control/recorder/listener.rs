//! `RecordingListener`: writes what happens in a level into the recorder.

use std::sync::Arc;

use super::RecorderTap;
use super::records::{EVENT_WORDS, EventRecord, Happened};
use crate::control::events::{Event, EventKind, Listener};
use crate::control::ring::Ring;

/// Tells the recorder of what happens in a level.
pub(super) struct RecordingListener {
    tap: Arc<RecorderTap>,
    level: u16,
    /// The ring for a recorder, and its number.
    ring: Option<(u64, Option<Arc<Ring<EVENT_WORDS>>>)>,
}

// === impl RecordingListener ===

impl RecordingListener {
    pub(super) fn new(tap: &Arc<RecorderTap>, level: usize) -> Self {
        Self { tap: Arc::clone(tap), level: u16::try_from(level).unwrap_or(u16::MAX), ring: None }
    }
}

impl Listener for RecordingListener {
    fn on_events(&mut self, events: &[Event]) {
        if !self.tap.is_on() {
            self.ring = None;
            return;
        }
        let loaded = self.tap.recorder.load();
        let Some(recorder) = &*loaded else { return };
        if self.ring.as_ref().is_none_or(|(number, _)| *number != recorder.number) {
            self.ring = Some((recorder.number, recorder.events.add()));
        }
        let Some((_, Some(ring))) = &self.ring else { return };
        for event in events {
            let what = match event.kind {
                EventKind::Finished { ran, .. } => Happened::Finished { ran },
                EventKind::Started { waited, .. } => Happened::Started { waited },
                EventKind::GaveUp { waited, reason, .. } => Happened::GaveUp { waited, reason },
                _ => continue,
            };
            ring.push(EventRecord { id: event.id, level: self.level, what }.to_words());
        }
    }
}
