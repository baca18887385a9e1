//! Light load, a burst or an overload, and the room that bursts have at light load.

use super::sample::Sums;
use super::{AutoLimit, LimitReason, Phase};
use crate::time::{Instant, MILLISECOND, Nanos};

/// How much the service has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Load {
    /// No request waits, or for moments only.
    Light,
    /// A request has waited for a moment.
    Burst,
    /// Requests wait all the time.
    Overload,
}

/// Determines the load at every tick.
#[derive(Debug, Clone)]
pub(super) struct LoadDetector {
    pub(super) load: Load,
    /// How long requests have waited without a gap, and how many requests ended in that time.
    waiting: f64,
    ended_while_waiting: f64,
    /// Rises while almost no request waits, and falls while one does.
    calm: f64,
    /// An overload is over when it has gone up to this.
    pub(super) calm_max: f64,
    burst_began: Instant,
    ended_in_burst: f64,
    /// The sums at light load, from which the room for bursts follows.
    light: Sums,
    /// The highest throughput that the service has shown.
    pub(super) peak: f64,
    pub(super) room: f64,
    room_before_burst: f64,
}

/// Nothing is tried in the first moments of an overload: the limit that was found before is right already (AL-4).
pub(super) const OVERLOAD_AFTER: Nanos = 500 * MILLISECOND;

/// How far bursts may go above the limit. A service that collapses still does more there than [`ROOM_LOAD_MAX`] of its peak, so that a
/// burst drains by itself.
const ROOM_MAX: f64 = 1.35;

/// There is no room for bursts above this share of the peak.
const ROOM_LOAD_MAX: f64 = 0.85;

/// How long it takes to judge the light load.
const LIGHT_SECONDS: f64 = 2.0;

const CALM_MAX: f64 = 0.2;

// === impl Load ===

impl Load {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Light, Self::Burst, Self::Overload];

    /// A short name, for metrics and views.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Burst => "burst",
            Self::Overload => "overload",
        }
    }
}

// === impl LoadDetector ===

impl LoadDetector {
    pub(super) fn new(peak: f64) -> Self {
        Self {
            load: Load::Light,
            waiting: 0.0,
            ended_while_waiting: 0.0,
            calm: 0.0,
            calm_max: CALM_MAX,
            burst_began: Instant::default(),
            ended_in_burst: 0.0,
            light: Sums::default(),
            peak,
            room: 1.0,
            room_before_burst: 1.0,
        }
    }

    pub(super) fn take_in(&mut self, span: f64, sums: &Sums) {
        let ended = sums.ended();
        self.ended_while_waiting += ended;
        self.ended_in_burst += ended;
        self.light.add(span, sums);
    }

    /// The service has worked at its limit for a while.
    pub(super) fn note_throughput(&mut self, throughput: f64) {
        self.peak = if throughput > self.peak { throughput } else { self.peak + 0.01 * (throughput - self.peak) };
    }
}

// === impl AutoLimit ===

impl AutoLimit {
    /// Whether there is an overload, in which windows count.
    pub(super) fn judge_load(&mut self, now: Instant, span: f64, waited: f64) -> bool {
        let seats = self.applied_seats();
        let load = &mut self.load;
        if waited > 0.99 * span {
            load.waiting += span;
        } else {
            load.waiting = 0.0;
            load.ended_while_waiting = 0.0;
        }
        let step = if waited < 0.5 * span { span } else { -span };
        load.calm = (load.calm + step).clamp(0.0, load.calm_max);
        match load.load {
            Load::Light => {
                if load.waiting >= 0.01 && load.ended_while_waiting >= 0.5 * seats {
                    load.load = Load::Burst;
                    load.burst_began = now;
                    load.ended_in_burst = 0.0;
                    load.calm = 0.0;
                    load.room_before_burst = std::mem::replace(&mut load.room, 1.0);
                    self.ended_since_change = 0.0;
                } else if load.light.seconds >= LIGHT_SECONDS {
                    self.judge_room(now);
                }
                false
            }
            Load::Burst => {
                if load.calm >= 0.05 {
                    load.load = Load::Light;
                    load.room = if self.is_held_down { 1.0 } else { load.room_before_burst };
                } else if now - load.burst_began >= OVERLOAD_AFTER && load.ended_in_burst >= 2.0 * seats {
                    load.load = Load::Overload;
                    if self.is_known {
                        self.hold(now, OVERLOAD_AFTER);
                    } else {
                        self.start(now);
                    }
                }
                false
            }
            Load::Overload if load.calm < load.calm_max => true,
            Load::Overload => {
                self.end_overload(now);
                false
            }
        }
    }

    /// Short waits far from the peak: leaves room for bursts.
    fn judge_room(&mut self, now: Instant) {
        let load = &mut self.load;
        let light = std::mem::take(&mut load.light);
        let has_short_waits = light.waited > 0.01 * light.seconds;
        let is_far_from_peak = light.good < ROOM_LOAD_MAX * load.peak * light.seconds;
        if self.is_known && !self.is_held_down && load.room < ROOM_MAX && has_short_waits && is_far_from_peak {
            load.room = (load.room * 1.15).min(ROOM_MAX);
            let reason = LimitReason::Room(load.room);
            self.tell(now, self.limit, reason);
        }
    }

    fn end_overload(&mut self, now: Instant) {
        let before = self.limit;
        if matches!(self.phase, Phase::MeasuringBase | Phase::Trying) {
            // A search that did not end is void, but a start keeps what the load has asked for.
            let is_climbing_start = !self.is_known && self.search.is_upward();
            self.limit =
                self.restored(if is_climbing_start { self.limit.max(self.applied) } else { self.search.began_at });
        }
        self.load.load = Load::Light;
        self.load.light = Sums::default();
        self.probing.first = None;
        self.tell(now, before, LimitReason::NobodyWaits);
        self.hold(now, OVERLOAD_AFTER);
    }
}
