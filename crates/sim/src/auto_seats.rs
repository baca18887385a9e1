//! The limit that finds itself, run by the simulated server.

use std::ops::RangeInclusive;

use evenkeel_engine::Engine;
use evenkeel_engine::auto_limit::{AutoLimit, Learnt, Sample, TICK};
use evenkeel_engine::borrowing::SeatDivision;
use evenkeel_engine::time::{Instant, Nanos};

/// How the seats of a server find themselves.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AutoSettings {
    /// The fewest and the most seats.
    pub bounds: RangeInclusive<u32>,
    /// Where it starts if nothing was learnt.
    pub start: u32,
    /// What an earlier run has learnt.
    pub learnt: Option<Learnt>,
}

/// The limit, and what it has not been told yet.
#[derive(Debug)]
pub(crate) struct AutoSeats {
    pub(crate) limit: AutoLimit,
    pub(crate) next_tick: Nanos,
    sample: Sample,
    as_of: Nanos,
    applied: i64,
}

// === impl AutoSettings ===

impl AutoSettings {
    /// A limit that starts at so many seats.
    pub fn new(bounds: RangeInclusive<u32>, start: u32) -> Self {
        Self { bounds, start, learnt: None }
    }

    /// A limit that an earlier run has learnt.
    #[must_use]
    pub fn learnt(self, learnt: Learnt) -> Self {
        Self { learnt: Some(learnt), ..self }
    }
}

// === impl AutoSeats ===

impl AutoSeats {
    pub(crate) fn new(settings: AutoSettings) -> Self {
        let AutoSettings { bounds, start, learnt } = settings;
        let mut limit = AutoLimit::new(bounds, start, learnt);
        let applied = i64::from(limit.tick(Instant::default(), &Sample::default(), 0));
        Self { limit, next_tick: TICK, sample: Sample::default(), as_of: 0, applied }
    }

    pub(crate) fn seats(&self) -> i64 {
        self.applied
    }

    /// Time passes until now. To be called before anything changes.
    pub(crate) fn pass<P>(&mut self, now: Nanos, engine: &Engine<P, SeatDivision>) {
        let span = now - std::mem::replace(&mut self.as_of, now);
        if span > 0 {
            let (seats, waits) = usage(engine);
            self.sample.passed(span, seats, waits);
        }
    }

    #[inline]
    pub(crate) fn ended(&mut self, class: usize, held: Nanos, seats: u32, is_good: bool) {
        self.sample.ended(class, held, seats, is_good);
    }

    /// The limit looks at what has happened. Returns the seats if they change.
    pub(crate) fn tick<P>(&mut self, now: Instant, engine: &Engine<P, SeatDivision>) -> Option<i64> {
        self.next_tick = now.as_nanos() + TICK;
        let sample = std::mem::take(&mut self.sample);
        let seats = i64::from(self.limit.tick(now, &sample, usage(engine).0));
        let before = std::mem::replace(&mut self.applied, seats);
        (before != seats).then_some(seats)
    }
}

/// The seats in use, and whether somebody waits.
fn usage<P>(engine: &Engine<P, SeatDivision>) -> (u32, bool) {
    let (mut seats, mut waits) = (0, false);
    for level in engine.levels() {
        seats += level.queue_set.seats_in_use();
        waits |= level.queue_set.waiting() > 0;
    }
    (u32::try_from(seats).unwrap_or(u32::MAX), waits)
}
