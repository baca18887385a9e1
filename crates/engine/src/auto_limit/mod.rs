//! The limit that finds itself: how many requests a service can work on at a time, from what comes of trying (AL).
//!
//! [`AutoLimit`] controls the *elasticity of throughput*: what a few seats more or less change in the number of good responses. It steers
//! to no latency, so there is no baseline that could drift. It acts only while requests wait: then a trial costs a little waiting, and
//! never a rejection.
//!
//! Everything it knows are sums over windows of time ([`Sample`]). The figure of a window is K, the seat-time for a good response. By
//! Little's law, throughput is seats in use / K, so two windows at two limits give the elasticity, with a known error. Time is counted
//! in *turnovers* (requests that ended / limit), so that no time constant has to fit the service.
//!
//! | file | what it does |
//! |---|---|
//! | `sample`, `window` | sums, and what two windows say |
//! | `totals` | sums of one of several servers, for the one that finds the limit for all |
//! | `load` | light load, a burst or an overload; room for bursts |
//! | `search` | trials by large steps, until the limit is known |
//! | `probe` | holds the limit, notices when the service changes, and steers by small probes |
//! | `brake` | fewer seats when requests fail |
//! | `change` | every change with its reason |
//! | `concurrency` | a number of seats or `auto`, as operators write it |

mod brake;
mod change;
mod concurrency;
mod load;
mod probe;
mod sample;
mod search;
mod totals;
mod window;

use std::ops::RangeInclusive;

use brake::Brake;
use change::ChangeLog;
use load::LoadDetector;
use probe::Probing;
use sample::{Sums, seconds};
use search::Search;
use window::Window;

pub use change::{CeilingCause, LimitChange, LimitReason, SearchCause};
pub use concurrency::{AUTO_BOUNDS, Concurrency, ConcurrencyError};
pub use load::Load;
pub use sample::{CLASSES, Sample};
pub use totals::Totals;
pub use window::Elasticity;

use crate::elementary::ln;
use crate::time::{Instant, MILLISECOND, Nanos};

/// Finds the limit of a server. A state machine: samples and times in, the limit out.
///
/// # How it is called
///
/// [`tick`](Self::tick) every [`TICK`] with the sample of that time, and the number of seats in use. It returns the limit to apply. After each
/// tick, [`changes_since`](Self::changes_since) has what to log, and [`learnt`](Self::learnt) what to keep for the next start.
///
/// ```
/// use evenkeel_engine::auto_limit::{AutoLimit, Sample, TICK};
/// use evenkeel_engine::time::Instant;
///
/// let mut limit = AutoLimit::new(1..=1000, 20, None);
/// let (mut now, mut sample) = (Instant::from_nanos(0), Sample::default());
/// sample.passed(TICK, 3, false);
/// now = now + TICK;
/// assert_eq!(limit.tick(now, &sample, 3), 20, "nothing is tried while nobody waits");
/// ```
#[derive(Debug, Clone)]
pub struct AutoLimit {
    bounds: RangeInclusive<u32>,
    /// The seats below which levels could not keep their promises (AL-6).
    floor: u32,
    /// Whether an outside signal asks for no more seats (AL-10).
    is_held_down: bool,
    /// The limit that is believed to be right. A trial or a probe applies another one.
    limit: f64,
    applied: f64,
    phase: Phase,
    /// Whether the limit was found, in this run or an earlier one.
    is_known: bool,
    window: Window,
    /// Whether more requests than the limit are still inside, and how many have ended since it changed.
    is_draining: bool,
    ended_since_change: f64,
    last_tick: Option<Instant>,
    load: LoadDetector,
    search: Search,
    probing: Probing,
    brake: Brake,
    ceiling: Option<Ceiling>,
    elasticity: Option<Elasticity>,
    changes: ChangeLog,
}

/// What a limit knows of its service, to be kept for the next start (AL-3).
///
/// Not `#[non_exhaustive]`: callers make it of what they kept, and have to give all of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learnt {
    /// The limit.
    pub limit: f64,
    /// The usual logarithm of the seat-time for a good response, if it is known.
    pub ln_cost: Option<f64>,
    /// The highest throughput that the service has shown, in good responses a second.
    pub peak: f64,
}

/// What the limit is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The limit stays where it is.
    Holding,
    /// A search measures the present limit, to compare trials with.
    MeasuringBase,
    /// A search tries another limit.
    Trying,
    /// A probe with a few seats more.
    ProbingUp,
    /// A probe with a few seats less.
    ProbingDown,
}

/// The state of a limit, for metrics and for people.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct LimitStatus {
    /// The limit that is believed to be right.
    pub limit: f64,
    /// The limit in effect: that of a trial or a probe, or with room for bursts.
    pub applied: u32,
    /// Whether the limit was found, in this run or an earlier one.
    pub is_known: bool,
    /// What the limit is doing.
    pub phase: Phase,
    /// How much the service has to do.
    pub load: Load,
    /// The latest estimate.
    pub elasticity: Option<Elasticity>,
    /// The highest limit for now, after throughput fell or requests failed above it.
    pub ceiling: Option<f64>,
    /// How far bursts may go above the limit at light load; 1 if not at all.
    pub room: f64,
}

/// A limit above which nothing is tried for a while.
#[derive(Debug, Clone, Copy)]
struct Ceiling {
    seats: f64,
    /// The time at which the ceiling rises.
    until: Instant,
}

/// The time between two ticks.
pub const TICK: Nanos = 5 * MILLISECOND;

/// The elasticity to stay at: the last seat brings a fifth of what an average seat brings.
const GOAL: f64 = 0.20;

/// Below this elasticity there is a cliff, which is remembered as a ceiling.
const CLIFF: f64 = -1.0;

/// For how long a ceiling stays before it rises by a tenth.
const CEILING_SPAN: Nanos = 30_000 * MILLISECOND;

// === impl AutoLimit ===

impl AutoLimit {
    /// A limit within bounds that starts at a number of seats, or where an earlier run ended. Bounds of less than one seat, or in the wrong
    /// order, are widened.
    pub fn new(bounds: RangeInclusive<u32>, start: u32, learnt: Option<Learnt>) -> Self {
        let min = (*bounds.start()).max(1);
        let max = (*bounds.end()).max(min);
        let learnt = learnt.filter(|learnt| learnt.limit.is_finite() && learnt.peak.is_finite());
        let first = learnt.map_or(f64::from(start), |learnt| learnt.limit).clamp(f64::from(min), f64::from(max));
        let usual = learnt.and_then(|learnt| learnt.ln_cost).filter(|cost| cost.is_finite());
        Self {
            bounds: min..=max,
            floor: 1,
            is_held_down: false,
            limit: first,
            applied: first,
            phase: Phase::Holding,
            is_known: learnt.is_some(),
            window: Window::default(),
            is_draining: true,
            ended_since_change: 0.0,
            last_tick: None,
            load: LoadDetector::new(learnt.map_or(0.0, |learnt| learnt.peak.max(0.0))),
            search: Search::new(first),
            probing: Probing::new(usual),
            brake: Brake::default(),
            ceiling: None,
            elasticity: None,
            changes: ChangeLog::default(),
        }
    }

    /// For a limit that is looked at less often than every [`TICK`], such as that of several servers: requests have to wait for no longer than four such
    /// periods before an overload is taken to be over.
    #[must_use]
    pub fn looked_at_every(mut self, period: Nanos) -> Self {
        self.load.calm_max = self.load.calm_max.max(4.0 * seconds(period));
        self
    }

    /// Time has passed since the last tick. Returns the limit to apply.
    pub fn tick(&mut self, now: Instant, sample: &Sample, seats_in_use: u32) -> u32 {
        self.pass(now, sample, Some(seats_in_use))
    }

    /// Time has passed in which the limit was not in effect everywhere, as some of several servers had not heard of it. What happened says nothing
    /// about the limit then, but requests that fail brake, and the load is known.
    pub fn settle(&mut self, now: Instant, sample: &Sample) -> u32 {
        self.pass(now, sample, None)
    }

    /// Without a number of seats in use, the limit is not in effect everywhere.
    fn pass(&mut self, now: Instant, sample: &Sample, seats_in_use: Option<u32>) -> u32 {
        let Some(last) = self.last_tick.replace(now) else {
            return self.limit();
        };
        let span = seconds(now - last);
        if span > 0.0 {
            self.take_in(span, sample);
            if seats_in_use.is_none() {
                self.forget_unsettled();
            }
            self.relax_ceiling(now);
            self.obey_hold(now);
            let has_braked = self.brake(now);
            let is_overload = self.judge_load(now, span, sample.sums.waited);
            if is_overload
                && !has_braked
                && let Some(seats_in_use) = seats_in_use
            {
                self.decide(now, seats_in_use);
            }
        }
        self.limit()
    }

    /// The limit to apply: never outside of the bounds, and never below what the levels need (AL-6).
    pub fn limit(&self) -> u32 {
        let seats = whole_seats(self.applied * self.load.room);
        seats.min(*self.bounds.end()).max(*self.bounds.start()).max(self.floor)
    }

    /// The bounds of the limit.
    pub fn bounds(&self) -> RangeInclusive<u32> {
        self.bounds.clone()
    }

    /// The levels need at least so many seats from now on.
    pub fn set_floor(&mut self, seats: u32) {
        self.floor = seats.max(1);
    }

    /// Whether an outside signal asks for no more seats (AL-10). Fewer are still tried. A trial or a probe with more seats that is under
    /// way ends at the next tick.
    pub fn hold_down(&mut self, is_held_down: bool) {
        self.is_held_down = is_held_down;
    }

    /// What to keep for the next start; `None` as long as the limit is not known.
    pub fn learnt(&self) -> Option<Learnt> {
        self.is_known.then_some(Learnt { limit: self.limit, ln_cost: self.probing.usual, peak: self.load.peak })
    }

    /// The state, for metrics and for people.
    pub fn status(&self) -> LimitStatus {
        LimitStatus {
            limit: self.limit,
            applied: self.limit(),
            is_known: self.is_known,
            phase: self.phase,
            load: self.load.load,
            elasticity: self.elasticity,
            ceiling: self.ceiling.map(|ceiling| ceiling.seats),
            room: self.load.room,
        }
    }

    /// The changes with this number or a higher one, with their numbers. The oldest are forgotten.
    pub fn changes_since(&self, number: u64) -> impl Iterator<Item = (u64, &LimitChange)> {
        self.changes.since(number)
    }

    /// Ends a trial or a probe with more seats that began before the outside signal (AL-10).
    fn obey_hold(&mut self, now: Instant) {
        if !self.is_held_down || whole_seats(self.applied) <= whole_seats(self.limit) {
            return;
        }
        if self.phase == Phase::Trying {
            self.refuse(now);
        } else {
            self.hold(now, 500 * MILLISECOND);
        }
    }

    /// A limit that is to be restored: not above the present one while an outside signal asks for no more seats (AL-10).
    fn restored(&self, limit: f64) -> f64 {
        if self.is_held_down { limit.min(self.limit) } else { limit }
    }

    fn take_in(&mut self, span: f64, sample: &Sample) {
        self.window.add(span, sample);
        let ended = sample.sums.ended();
        self.ended_since_change += ended;
        self.brake.take_in(span, &sample.sums);
        self.load.take_in(span, &sample.sums);
    }

    /// The limit was not in effect everywhere: what is measured begins anew, and whether the last braking helps is not known yet.
    fn forget_unsettled(&mut self) {
        self.window = Window::default();
        self.ended_since_change = 0.0;
        self.brake.wait_for_effect();
    }

    /// An overload: goes on with what is being measured.
    fn decide(&mut self, now: Instant, seats_in_use: u32) {
        // Nearly all requests inside started at the present limit once the excess has left and one turnover has passed.
        if self.is_draining {
            if seats_in_use > self.limit() {
                self.ended_since_change = 0.0;
            } else {
                self.is_draining = false;
            }
        }
        let applied = self.applied_seats();
        if self.ended_since_change < applied {
            self.window = Window::default();
            return;
        }
        let sums = self.window.sums;
        let turnovers = sums.ended() / applied;
        if sums.waited < 0.9 * sums.seconds {
            // The overload had gaps, so the window says nothing.
            if turnovers > 5.0 {
                self.window = Window::default();
            }
            return;
        }
        match self.phase {
            Phase::Holding => self.hold_on(now, turnovers),
            Phase::MeasuringBase => self.measure_base(now, turnovers),
            Phase::Trying => self.judge_trial(now, turnovers),
            Phase::ProbingUp | Phase::ProbingDown => self.judge_probe(now, turnovers),
        }
    }

    /// Applies a limit, and starts a window.
    fn apply(&mut self, phase: Phase, seats: f64) {
        let seats = seats.clamp(self.min(), self.max());
        let is_change = whole_seats(seats) != whole_seats(self.applied);
        self.phase = phase;
        self.applied = seats;
        self.window = Window::default();
        if is_change {
            self.ended_since_change = 0.0;
            self.is_draining = true;
        }
    }

    /// Goes back to the limit and holds it for a time.
    fn hold(&mut self, now: Instant, span: Nanos) {
        self.probing.hold_until = now + span;
        self.apply(Phase::Holding, self.limit);
    }

    fn set_ceiling(&mut self, now: Instant, seats: f64, cause: CeilingCause) {
        self.ceiling = Some(Ceiling { seats, until: now + CEILING_SPAN });
        self.tell(now, self.limit, LimitReason::Ceiling { seats: whole_seats(seats), cause });
    }

    /// A ceiling rises by and by, and is gone when it is far away.
    fn relax_ceiling(&mut self, now: Instant) {
        if let Some(ceiling) = &mut self.ceiling
            && now > ceiling.until
        {
            ceiling.seats *= 1.1;
            ceiling.until = now + CEILING_SPAN;
            if ceiling.seats > 2.0 * self.limit {
                self.ceiling = None;
            }
        }
    }

    fn ceiling_seats(&self) -> f64 {
        self.ceiling.map_or(f64::MAX, |ceiling| ceiling.seats)
    }

    fn tell(&mut self, now: Instant, before: f64, reason: LimitReason) {
        let (from, to) = (whole_seats(before), whole_seats(self.limit));
        self.changes.push(LimitChange { at: now, from, to, reason });
    }

    fn min(&self) -> f64 {
        f64::from(*self.bounds.start())
    }

    fn max(&self) -> f64 {
        f64::from(*self.bounds.end())
    }

    fn limit_seats(&self) -> f64 {
        round_seats(self.limit)
    }

    fn applied_seats(&self) -> f64 {
        round_seats(self.applied)
    }

    /// Whether a window may end: it is long enough and sure enough, or as sure as it gets.
    fn is_enough(&self, turnovers: f64, turnovers_min: f64, is_sure: bool) -> bool {
        let Sums { seconds, good, .. } = self.window.sums;
        let good_min = if seconds < 1.0 { 20.0 } else { 8.0 };
        let is_late = turnovers >= 15.0 && (good >= 300.0 || seconds >= 1.0);
        seconds >= 0.02 && good >= good_min && turnovers >= turnovers_min && (is_sure || is_late)
    }
}

// === impl LimitStatus ===

impl LimitStatus {
    /// A limit that another server finds for this one too: only that one knows more.
    pub fn found_elsewhere(limit: f64, applied: u32, is_known: bool) -> Self {
        Self {
            limit,
            applied,
            is_known,
            phase: Phase::Holding,
            load: Load::Light,
            elasticity: None,
            ceiling: None,
            room: 1.0,
        }
    }
}

// === impl Phase ===

impl Phase {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Holding, Self::MeasuringBase, Self::Trying, Self::ProbingUp, Self::ProbingDown];

    /// A short name, for metrics and views.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holding => "holding",
            Self::MeasuringBase => "measuring-base",
            Self::Trying => "trying",
            Self::ProbingUp => "probing-up",
            Self::ProbingDown => "probing-down",
        }
    }
}

fn round_seats(seats: f64) -> f64 {
    seats.round().max(1.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is at least 1")]
fn whole_seats(seats: f64) -> u32 {
    round_seats(seats) as u32
}

/// How far apart two numbers of seats are, as the absolute logarithm of their ratio.
fn distance(a: f64, b: f64) -> f64 {
    ln(a / b).abs()
}
