//! Holding the limit: notices when the service has changed, and steers by small probes.

use super::search::{Direction, STEP_MAX};
use super::window::Window;
use super::{
    AutoLimit, CLIFF, CeilingCause, Elasticity, GOAL, LimitReason, Phase, SearchCause, distance, round_seats, seconds,
};
use crate::elementary::exp;
use crate::time::{Instant, MILLISECOND, Nanos};

/// The state of the limit while it is held.
#[derive(Debug, Clone)]
pub(super) struct Probing {
    pub(super) hold_until: Instant,
    /// The usual logarithm of the seat-time for a good response at this limit.
    pub(super) usual: Option<f64>,
    /// How many windows in a row were far from the usual.
    odd: u32,
    pair_began: Instant,
    is_up_first: bool,
    /// The first window of a pair of probes.
    pub(super) first: Option<Window>,
    /// The evidence of earlier pairs that the limit is too low, and too high.
    too_low: f64,
    too_high: f64,
}

/// Half of the width of a pair of probes as a part of the limit, at least one seat.
const HALF_WIDTH: f64 = 0.06;

/// A hold is so many times as long as the pair of probes before it, times the width of a probe: that bounds what probing costs.
const HOLD_FACTOR: f64 = 40.0;

/// How far the limit moves after a pair, for a standard deviation of one.
const GAIN: f64 = 0.02;

/// The evidence that begins a search.
const TOO_LOW: f64 = 2.5;
const TOO_HIGH: f64 = 3.0;

/// A jump of the logarithm of the seat-time for a response that begins a search, if it is seen twice.
const JUMP: f64 = 0.25;

/// A jump of this size, which is a factor of three, is judged after one turnover. It still has to be seen twice: a single odd
/// window may be a pause of the service, and changes nothing (AL-11).
const JUMP_FAST: f64 = 1.1;

// === impl Probing ===

impl Probing {
    pub(super) fn new(usual: Option<f64>) -> Self {
        Self {
            hold_until: Instant::default(),
            usual,
            odd: 0,
            pair_began: Instant::default(),
            is_up_first: true,
            first: None,
            too_low: 0.0,
            too_high: 0.0,
        }
    }

    pub(super) fn forget_evidence(&mut self) {
        self.too_low = 0.0;
        self.too_high = 0.0;
        self.odd = 0;
        self.first = None;
    }
}

// === impl AutoLimit ===

impl AutoLimit {
    /// Holds the limit, until it is time for a pair of probes.
    pub(super) fn hold_on(&mut self, now: Instant, turnovers: f64) {
        let window = self.window;
        let is_much_dearer = || self.probing.usual.is_some_and(|usual| window.ln_cost() - usual > JUMP_FAST);
        let is_enough = turnovers >= 2.0 || turnovers >= 1.0 && is_much_dearer();
        if window.sums.seconds >= 0.1 && window.sums.good >= 20.0 && is_enough {
            self.load.note_throughput(window.sums.good / window.sums.seconds);
            self.window = Window::default();
            let Some(usual) = self.probing.usual else {
                self.probing.usual = Some(window.ln_cost());
                return;
            };
            if self.has_jumped(now, &window) {
                return;
            }
            self.probing.usual = Some(usual + 0.1 * (window.ln_cost() - usual));
        }
        if now >= self.probing.hold_until && self.probing.odd == 0 {
            self.probing.is_up_first = !self.probing.is_up_first;
            self.probing.first = None;
            self.probing.pair_began = now;
            self.probe(self.probing.is_up_first);
        }
    }

    /// One half of a pair of probes is measured.
    pub(super) fn judge_probe(&mut self, now: Instant, turnovers: f64) {
        let window = self.window;
        let seconds = window.sums.seconds;
        let half = self.half_width() / self.limit;
        let deviation = window.variance().sqrt();
        let is_sure =
            deviation <= 0.4 * half || turnovers >= 5.0 && (seconds >= 0.1 && deviation <= half || seconds >= 0.4);
        if seconds < 0.05 || !self.is_enough(turnovers, 2.0, is_sure) || self.has_jumped(now, &window) {
            return;
        }
        match self.probing.first.take() {
            None => {
                self.probing.first = Some(window);
                self.probe(self.phase == Phase::ProbingDown);
            }
            Some(first) => self.steer(now, &first, &window),
        }
    }

    fn probe(&mut self, is_up: bool) {
        let (seats, half) = (self.limit_seats(), self.half_width());
        match is_up {
            true if self.is_held_down => self.apply(Phase::ProbingUp, seats),
            true => self.apply(Phase::ProbingUp, seats + half),
            false => self.apply(Phase::ProbingDown, seats - half),
        }
    }

    fn half_width(&self) -> f64 {
        round_seats(HALF_WIDTH * self.limit)
    }

    /// Both windows of a pair have been measured: moves the limit a little, and adds to the evidence.
    fn steer(&mut self, now: Instant, first: &Window, second: &Window) {
        let Some(measured) = second.elasticity_since(first, 0.02) else {
            return self.hold(now, 500 * MILLISECOND);
        };
        let deviation = measured.deviation;
        let elasticity = Elasticity { value: measured.value.clamp(-3.0, 3.0), deviation };
        self.elasticity = Some(elasticity);
        let before = self.limit;
        let goal = GOAL + 0.7 * self.half_width() / self.limit;
        let excess = elasticity.value - goal;
        let step = ((GAIN / deviation).clamp(0.01, 0.06) * excess).clamp(-0.08, 0.04);
        let step = if self.is_held_down { step.min(0.0) } else { step };
        self.limit = (self.limit * exp(step)).min(self.ceiling_seats()).clamp(self.min(), self.max());
        if deviation < 0.5 && elasticity.value + 3.0 * deviation < CLIFF {
            let seats = self.limit * (1.0 - HALF_WIDTH);
            self.set_ceiling(now, seats, CeilingCause::Collapse);
            self.limit = seats.max(self.min());
        }
        if distance(self.limit_seats(), round_seats(before)) > 0.06 {
            // Another limit has another cost.
            self.probing.usual = None;
        }
        let certainty = 1.0 / deviation.max(0.2);
        let too_low = (self.probing.too_low + (elasticity.value - 0.5) * certainty).max(0.0);
        let too_high = (self.probing.too_high - excess * certainty - 0.5).max(0.0);
        (self.probing.too_low, self.probing.too_high) = (too_low, too_high);
        self.tell(now, before, LimitReason::Probe(elasticity));
        let may_rise = self.limit < 0.95 * self.ceiling_seats() && !self.is_held_down;
        if too_low > TOO_LOW && may_rise {
            self.search_one_way(now, Direction::Up, SearchCause::MoreHelps);
        } else if too_high > TOO_HIGH {
            self.search_one_way(now, Direction::Down, SearchCause::FewerHelps);
        } else if too_low > 0.3 || too_high > 1.0 {
            // The evidence is a suspicion only: probes again at once.
            self.hold(now, 0);
        } else {
            self.hold(now, self.hold_span(now));
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "at most 300 seconds")]
    fn hold_span(&self, now: Instant) -> Nanos {
        let pair = seconds(now - self.probing.pair_began);
        let span = HOLD_FACTOR * pair * self.half_width() / self.limit;
        (span.clamp(0.4, 300.0) * 1e9) as Nanos
    }

    /// Whether the seat-time for a response has left its usual place. Twice in a row begins a search.
    fn has_jumped(&mut self, now: Instant, window: &Window) -> bool {
        let Some(usual) = self.probing.usual else {
            self.probing.odd = 0;
            return false;
        };
        let change = window.ln_cost() - usual;
        if change.abs() <= JUMP.max(4.0 * window.variance().sqrt()) {
            self.probing.odd = 0;
            return false;
        }
        self.probing.odd += 1;
        self.probing.first = None;
        if self.probing.odd < 2 {
            self.hold(now, 0);
            return true;
        }
        let is_at_limit = self.phase == Phase::Holding;
        self.probing.usual = None;
        self.ceiling = None;
        if change > 0.0 {
            self.search(now, STEP_MAX, Direction::Down, SearchCause::Dearer);
        } else {
            self.search(now, STEP_MAX / 2.0, Direction::Up, SearchCause::Cheaper);
        }
        if is_at_limit {
            // This window is the first half of a trial.
            self.begin_trial_from(now, window);
        }
        true
    }
}
