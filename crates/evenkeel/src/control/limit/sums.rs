//! `LevelSums`: the sums of one level for the limit that finds itself, as a listener of its events.

use std::sync::Arc;

use evenkeel_engine::LevelId;
use evenkeel_engine::auto_limit::Sample;
use evenkeel_engine::time::Instant;

use super::Pulse;
use super::resized::ResizedRequests;
use crate::control::events::{Event, EventKind, LevelNumbers, RunEnd};

/// Sums up what happens in a level between two looks of the limit: additions only, whatever happens (AL-8).
#[derive(Debug)]
pub(crate) struct LevelSums {
    sample: Sample,
    as_of: Instant,
    seats_in_use: u32,
    waits: bool,
    /// The seats of requests that have ended and linger.
    lingering: u32,
    /// The requests whose seats have changed while they run.
    resized: ResizedRequests,
    /// The class of the first flow schema of the level (AL-9).
    first_class: usize,
    pulse: Arc<Pulse>,
}

/// Levels have so many classes of their own, before they share them with others.
const CLASSES_OF_LEVEL: usize = 5;

// === impl LevelSums ===

impl LevelSums {
    pub(crate) fn new(id: LevelId, pulse: &Arc<Pulse>, now: Instant) -> Self {
        Self {
            sample: Sample::default(),
            as_of: now,
            seats_in_use: 0,
            waits: false,
            lingering: 0,
            resized: ResizedRequests::default(),
            first_class: id.index().wrapping_mul(CLASSES_OF_LEVEL),
            pulse: Arc::clone(pulse),
        }
    }

    /// Sets the state of the level at which the sums begin.
    pub(crate) fn begin_with(&mut self, level: LevelNumbers) {
        self.take_over(level);
    }

    /// Adds up events of the level.
    pub(crate) fn hear(&mut self, events: &[Event]) {
        for event in events {
            match event.kind {
                EventKind::Finished { ran, lingers, end, .. } => {
                    // Requests without seats say nothing about how many seats there should be.
                    if event.seats > 0 {
                        let seat_time = self.resized.seat_time(event, ran);
                        let class = self.first_class.wrapping_add(event.series as usize);
                        match end {
                            RunEnd::Left | RunEnd::Revoked => self.sample.left_with(seat_time),
                            RunEnd::Done | RunEnd::Failed => {
                                self.sample.ended_with(class, seat_time, end == RunEnd::Done);
                            }
                        }
                    }
                    if lingers {
                        self.pass(event.at);
                        self.lingering = self.lingering.saturating_add(event.seats);
                    }
                }
                EventKind::Released => {
                    self.pass(event.at);
                    self.lingering = self.lingering.saturating_sub(event.seats);
                }
                EventKind::Resized { before } => self.resized.note(event, before),
                _ => {}
            }
            if event.level.is_last {
                self.pass(event.at);
                self.take_over(event.level);
            }
        }
        self.pulse.note_events();
    }

    /// Takes the sums since the last call.
    pub(crate) fn take(&mut self, now: Instant) -> Sample {
        self.pass(now);
        std::mem::take(&mut self.sample)
    }

    #[inline]
    fn pass(&mut self, now: Instant) {
        let span = now - self.as_of;
        if span > 0 {
            self.as_of = now;
            self.sample.passed(span, self.seats_in_use, self.waits);
            if self.lingering > 0 {
                self.sample.lingered(span, self.lingering);
            }
        }
    }

    #[inline]
    fn take_over(&mut self, level: LevelNumbers) {
        self.seats_in_use = level.seats_in_use;
        self.waits = level.waiting > 0;
    }
}
