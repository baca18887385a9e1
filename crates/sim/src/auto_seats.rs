//! The limit that finds itself, run by the simulated server, or by the fleet that it belongs to.

use std::ops::RangeInclusive;

use evenkeel_engine::Engine;
use evenkeel_engine::auto_limit::{AutoLimit, Learnt, Sample, TICK, Totals};
use evenkeel_engine::borrowing::SeatDivision;
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::time::{Instant, Nanos};

/// How the seats of a server find themselves.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AutoSettings {
    /// The fewest and the most seats.
    pub bounds: RangeInclusive<u32>,
    /// Where it starts if nothing was learnt.
    pub start: u32,
    /// The limit that an earlier run has learnt.
    pub learnt: Option<Learnt>,
}

/// The limit, and the sums that it has not got yet.
#[derive(Debug)]
pub(crate) struct AutoSeats {
    /// Nothing, if an instance of a fleet finds the limit for all.
    pub(crate) limit: Option<AutoLimit>,
    pub(crate) next_tick: Nanos,
    sample: Sample,
    as_of: Nanos,
    applied: i64,
    /// The seats of requests that have ended and linger.
    lingering: u32,
}

/// The usage of the levels, as far as it matters to the limit.
#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    /// The seats in use, and those of them in levels that have a limit.
    seats: u32,
    limited_seats: u32,
    somebody_waits: bool,
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
        Self { limit: Some(limit), next_tick: TICK, sample: Sample::default(), as_of: 0, applied, lingering: 0 }
    }

    /// Only sums up what happens, for an instance of a fleet.
    pub(crate) fn summing() -> Self {
        Self { limit: None, next_tick: Nanos::MAX, sample: Sample::default(), as_of: 0, applied: 0, lingering: 0 }
    }

    /// What has happened from the beginning until now, if nobody has taken it.
    pub(crate) fn totals<P>(&self, now: Nanos, engine: &Engine<P, SeatDivision>) -> Totals {
        let mut sample = self.sample;
        self.pass_in(&mut sample, now - self.as_of, engine);
        let mut totals = Totals::default();
        totals.add(now, &sample);
        totals
    }

    pub(crate) fn seats(&self) -> i64 {
        self.applied
    }

    /// Time passes until now. To be called before anything changes.
    pub(crate) fn pass<P>(&mut self, now: Nanos, engine: &Engine<P, SeatDivision>) {
        let span = now - std::mem::replace(&mut self.as_of, now);
        let mut sample = std::mem::take(&mut self.sample);
        self.pass_in(&mut sample, span, engine);
        self.sample = sample;
    }

    fn pass_in<P>(&self, sample: &mut Sample, span: Nanos, engine: &Engine<P, SeatDivision>) {
        if span > 0 {
            let usage = Usage::of(engine);
            sample.passed(span, usage.seats, usage.somebody_waits);
            if self.lingering > 0 {
                sample.lingered(span, self.lingering);
            }
        }
    }

    /// A request has ended. A request without seats says nothing about how many there should be.
    #[inline]
    pub(crate) fn ended(&mut self, class: usize, held: Nanos, seats: u32, is_good: bool) {
        if seats > 0 {
            self.sample.ended(class, held, seats, is_good);
        }
    }

    /// A request that has ended keeps its seats for a while.
    pub(crate) fn lingers(&mut self, seats: u32) {
        self.lingering = self.lingering.saturating_add(seats);
    }

    /// A request that has lingered gave its seats back.
    pub(crate) fn released(&mut self, seats: u32) {
        self.lingering = self.lingering.saturating_sub(seats);
    }

    /// The limit looks at what has happened. Returns the seats if they change.
    pub(crate) fn tick<P>(&mut self, now: Instant, engine: &Engine<P, SeatDivision>) -> Option<i64> {
        self.next_tick = now.as_nanos() + TICK;
        let limit = self.limit.as_mut()?;
        let sample = std::mem::take(&mut self.sample);
        limit.set_floor(engine.controller().seats_min());
        let seats = i64::from(limit.tick(now, &sample, Usage::of(engine).limited_seats));
        let before = std::mem::replace(&mut self.applied, seats);
        (before != seats).then_some(seats)
    }
}

// === impl Usage ===

impl Usage {
    fn of<P>(engine: &Engine<P, SeatDivision>) -> Self {
        engine.levels().fold(Self::default(), |all, level| {
            let seats = u32::try_from(level.queue_set.seats_in_use()).unwrap_or(u32::MAX);
            let limited = if matches!(level.queue_set.mode(), Mode::Exempt) { 0 } else { seats };
            Self {
                seats: all.seats.saturating_add(seats),
                limited_seats: all.limited_seats.saturating_add(limited),
                somebody_waits: all.somebody_waits || level.queue_set.waiting() > 0,
            }
        })
    }
}
