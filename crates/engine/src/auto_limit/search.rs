//! The search: trials by large steps. A trial that is taken goes on in its direction; one that is not turns round; then the step gets
//! smaller, until the limit is known.

use std::f64::consts::LN_2;

use super::window::Window;
use super::{AutoLimit, CLIFF, CeilingCause, GOAL, LimitReason, Phase, SearchCause, round_seats, whole_seats};
use crate::elementary::exp;
use crate::time::{Instant, MILLISECOND};

/// Where a search is.
#[derive(Debug, Clone)]
pub(super) struct Search {
    /// The limit that it began at.
    pub(super) began_at: f64,
    /// The logarithm of the factor of a trial.
    step: f64,
    direction: Direction,
    /// Whether a trial was taken since the last turn.
    has_moved: bool,
    /// Whether the other direction is being tried at the same step.
    has_turned: bool,
    /// Whether the search ends if its first trial is not taken.
    is_one_way: bool,
    /// What trials are compared with.
    base: Window,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// The step of a search that knows nothing: twice or half of the limit.
pub(super) const STEP_MAX: f64 = LN_2;

/// A search ends when its step is smaller.
const STEP_MIN: f64 = 0.15;

/// A trial upwards has to show so much more than the goal.
const MARGIN: f64 = 0.10;

/// A trial is measured until the elasticity is known to this.
const DEVIATION_MAX: f64 = 0.15;

// === impl Direction ===

impl Direction {
    fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }

    fn turned(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

// === impl Search ===

impl Search {
    pub(super) fn new(limit: f64) -> Self {
        Self {
            began_at: limit,
            step: STEP_MAX,
            direction: Direction::Down,
            has_moved: false,
            has_turned: false,
            is_one_way: false,
            base: Window::default(),
        }
    }

    pub(super) fn direction(&self) -> Direction {
        self.direction
    }

    pub(super) fn is_upward(&self) -> bool {
        self.direction == Direction::Up
    }
}

// === impl AutoLimit ===

impl AutoLimit {
    /// The first overload of an unknown service. Down first: that is harmless for the service, and costs a little waiting.
    pub(super) fn start(&mut self, now: Instant) {
        self.search(now, STEP_MAX, Direction::Down, SearchCause::Start);
    }

    /// A search in both directions.
    pub(super) fn search(&mut self, now: Instant, step: f64, direction: Direction, cause: SearchCause) {
        self.tell(now, self.limit, LimitReason::Search(cause));
        let base = self.search.base;
        self.search = Search { step, direction, base, ..Search::new(self.limit) };
        self.probing.forget_evidence();
        self.apply(Phase::MeasuringBase, self.limit);
    }

    /// A search that ends at once if its first trial is not taken.
    pub(super) fn search_one_way(&mut self, now: Instant, direction: Direction, cause: SearchCause) {
        self.search(now, STEP_MAX / 2.0, direction, cause);
        self.search.is_one_way = true;
    }

    /// A window at the limit is there already: the trial can begin.
    pub(super) fn begin_trial_from(&mut self, now: Instant, base: &Window) {
        self.search.base = *base;
        self.try_next(now);
    }

    pub(super) fn measure_base(&mut self, now: Instant, turnovers: f64) {
        let deviation_max = 0.7 * DEVIATION_MAX * self.search.step;
        let is_sure = self.window.variance() <= deviation_max * deviation_max;
        if self.is_enough(turnovers, 1.5, is_sure) {
            let base = self.window;
            self.begin_trial_from(now, &base);
        }
    }

    pub(super) fn judge_trial(&mut self, now: Instant, turnovers: f64) {
        let window = self.window;
        let Some(elasticity) = window.elasticity_since(&self.search.base, 0.03) else {
            // The seats in use did not follow the limit.
            if window.sums.seconds > 1.0 {
                self.refuse(now);
            }
            return;
        };
        let direction = self.search.direction;
        let goal = if direction == Direction::Up { GOAL + MARGIN } else { GOAL };
        let excess = elasticity.value - goal;
        let is_clear = turnovers >= 3.0 && window.sums.good >= 40.0 && excess.abs() > 3.0 * elasticity.deviation;
        if !self.is_enough(turnovers, 1.5, elasticity.deviation <= DEVIATION_MAX || is_clear) {
            return;
        }
        let is_taken = excess * direction.sign() > 0.0;
        let before = self.limit;
        self.elasticity = Some(elasticity);
        if is_taken {
            self.limit = self.applied;
        }
        self.tell(now, before, LimitReason::Trial { tried: whole_seats(self.applied), elasticity, is_taken });
        if elasticity.deviation < 0.5 && elasticity.value + 3.0 * elasticity.deviation < CLIFF {
            let seats = if direction == Direction::Up { before } else { 0.9 * before };
            self.set_ceiling(now, seats, CeilingCause::Collapse);
        }
        if is_taken {
            self.go_on(now, elasticity.value, &window);
        } else {
            self.refuse(now);
        }
    }

    fn try_next(&mut self, now: Instant) {
        let (limit, sign) = (self.limit_seats(), self.search.direction.sign());
        let mut seats = round_seats(self.limit * exp(sign * self.search.step));
        if whole_seats(seats) == whole_seats(limit) {
            seats += sign;
        }
        if self.search.is_upward() {
            seats = seats.min(self.ceiling_seats().floor());
        }
        seats = seats.clamp(self.min(), self.max());
        let is_forbidden = self.search.is_upward() && self.is_held_down;
        if is_forbidden || (seats - limit) * sign <= 0.0 {
            self.refuse(now);
        } else {
            self.apply(Phase::Trying, seats);
        }
    }

    /// A trial was not taken, or cannot be made: the other direction once, then a smaller step.
    pub(super) fn refuse(&mut self, now: Instant) {
        if self.search.is_one_way && !self.search.has_moved {
            self.tell(now, self.limit, LimitReason::NotConfirmed);
            return self.hold(now, 500 * MILLISECOND);
        }
        let search = &mut self.search;
        search.is_one_way = false;
        if !search.has_moved && !search.has_turned {
            search.has_turned = true;
            search.direction = search.direction.turned();
            return self.try_next(now);
        }
        search.step /= 2.0;
        search.has_turned = false;
        if search.has_moved {
            search.direction = search.direction.turned();
            search.has_moved = false;
        }
        if !self.ends_search(now) {
            self.apply(Phase::MeasuringBase, self.limit);
        }
    }

    /// A trial was taken: its window is what the next one is compared with.
    fn go_on(&mut self, now: Instant, elasticity: f64, window: &Window) {
        let search = &mut self.search;
        if search.is_upward() && elasticity < 0.6 {
            // The knee is inside of this step.
            search.step /= 2.0;
        } else if search.has_moved && (elasticity - 0.5) * search.direction.sign() > 0.2 {
            search.step = (2.0 * search.step).min(STEP_MAX);
        }
        search.base = *window;
        search.has_moved = true;
        if !self.ends_search(now) {
            self.try_next(now);
        }
    }

    /// Ends the search if its step is so small that probes do better.
    fn ends_search(&mut self, now: Instant) -> bool {
        if self.search.step >= STEP_MIN.max(1.2 / self.limit_seats().max(4.0)) {
            return false;
        }
        self.is_known = true;
        self.probing.usual = None;
        self.tell(now, self.limit, LimitReason::SearchDone);
        self.hold(now, 500 * MILLISECOND);
        true
    }
}
