//! `FlowControl::canary`: how a canary begins, is looked at, and ends.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::auto_limit::Concurrency;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_engine::time::{Instant, MILLISECOND, Nanos, SECOND};

use super::counts::{CanaryTally, TallyListener};
use super::state::{CanaryBounds, CanaryPhase, CanaryState};
use super::watch::{CanaryWatch, ReturnReason};
use crate::control::builder;
use crate::control::clock::nanos;
use crate::control::events::Listeners;
use crate::control::flow_control::{FlowControl, FlowControlShared, Setup};
use crate::control::into_objects::IntoObjects;
use crate::control::object_problems::{self, InvalidObjects};
use crate::control::trace;

/// How much a canary gets, and when it ends by itself.
///
/// Not `#[non_exhaustive]`, so that literals can end with `..Default::default()`. End them so: releases add fields.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CanarySettings {
    /// How many percent of the flows it has, from 1 to 99, and of the seats.
    pub percent: u8,
    /// How its levels borrow; `None`: as they do.
    pub borrowing: Option<Borrowing>,
    /// The bounds beyond which the canary ends by itself.
    pub bounds: CanaryBounds,
}

/// Why there is no canary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanaryError {
    /// The objects of the canary cannot be used.
    #[error(transparent)]
    Objects(#[from] InvalidObjects),
    /// The part of the flows is not from 1 to 99 percent.
    #[error("a canary has from 1 to 99 percent of the flows, not {0}")]
    Percent(u8),
    /// The number of seats was not set: with a limit that finds itself, it changes all the time.
    #[error("a canary needs a number of seats that is set; set `concurrency` to a number, outside of a fleet")]
    SeatsNotSet,
    /// There are fewer seats than both configurations need.
    #[error(
        "too few seats for a canary: there are {seats}, the levels in effect need {needed}, and those of the canary {needed_canary}"
    )]
    TooFewSeats {
        /// The seats that there are.
        seats: i64,
        /// The fewest that the levels in effect need.
        needed: u32,
        /// The fewest that those of the canary need.
        needed_canary: u32,
    },
}

/// A canary that runs.
#[derive(Debug)]
pub(super) struct Canary {
    pub(super) flow: FlowControl,
    settings: CanarySettings,
    since: Instant,
    tally: Arc<CanaryTally>,
}

/// The control plane of canaries, which requests do not look at.
#[derive(Debug, Default)]
pub(super) struct CanaryControl {
    watch: Option<CanaryWatch>,
    next_look: Option<Instant>,
    /// The seats of both configurations.
    seats: i64,
    /// One that has ended, and whose last requests have its seats until that time.
    ending: Option<(Arc<Canary>, Instant)>,
    /// The state of the last canary, if it has ended by itself.
    returned: Option<CanaryState>,
    /// How many canaries have ended by themselves.
    returns: u64,
}

/// How often a canary is compared with its bounds.
const LOOK: Nanos = SECOND;
/// How long the requests of a canary that has ended keep its seats at most.
const ENDING_MAX: Nanos = 30 * SECOND;
/// The hash of a flow is turned by this before it says where the flow belongs: queues are dealt by the same hash.
const TURN: u64 = 0x9E37_79B9_7F4A_7C15;

// === impl FlowControl ===

impl FlowControl {
    /// Lets these objects decide about a part of the flows, for real, with a part of the seats; a flow is never split. It replaces
    /// the canary before. When rejections or waits are worse than the bounds, the canary ends by itself:
    /// [`canary_state`](Self::canary_state) says why, and so does a warning.
    ///
    /// Which flows these are is decided by the hash of the flow under the objects in effect. Exempt requests stay. The canary gets at least the seats
    /// that its levels need; figures of levels and flows are without its requests.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use evenkeel::canary::CanarySettings;
    ///
    /// let flow = FlowControl::builder().server_concurrency(40).drive_by_hand().build();
    /// let new = "levels: {all: {share: 1, queue: 50}}\nmatch: [{level: all}]";
    /// flow.canary(new, CanarySettings { percent: 10, ..CanarySettings::default() })?;
    /// assert_eq!(flow.canary_state().unwrap().seats, 4);
    /// flow.end_canary();
    /// # Ok::<(), evenkeel::canary::CanaryError>(())
    /// ```
    pub fn canary(&self, objects: impl IntoObjects, settings: CanarySettings) -> Result<(), CanaryError> {
        let shared = self.shared();
        if !(1..=99).contains(&settings.percent) {
            return Err(CanaryError::Percent(settings.percent));
        }
        let objects = objects.into_objects(self.preset()).map_err(InvalidObjects::from)?;
        object_problems::check(&objects, shared.exempt_paths.as_ref(), self.preset())?;
        let objects = objects.with_mandatory_levels();
        if shared.is_in_fleet() || shared.limit_state().is_some() {
            return Err(CanaryError::SeatsNotSet);
        }
        shared.drop_canary();
        let mut control = shared.canary.control();
        let seats = shared.seat_limit();
        let canary_seats = shared.canary_seats(&objects, settings.percent, seats)?;
        let tally = Arc::new(CanaryTally::new(nanos(settings.bounds.wait_p99)));
        let flow = shared.build_canary(objects, settings, canary_seats, &tally, self.borrowing());
        let now = shared.now();
        control.seats = seats;
        control.watch = Some(CanaryWatch::new(settings.bounds));
        control.next_look = Some(now + LOOK);
        control.returned = None;
        shared.set_limit(seats - canary_seats);
        if shared.upkeep().has_keeper() {
            // Without a runtime, the canary is driven with this flow control.
            builder::look_after(&flow);
        }
        shared.canary.set(Some(Arc::new(Canary { flow, settings, since: now, tally })));
        drop(control);
        // The keeper may sleep for longer than until the first look.
        shared.upkeep().news.notify_one();
        trace::canary_begins(&shared.log, settings.percent, canary_seats);
        Ok(())
    }

    /// Ends the canary, if there is one: its flows are where they were before. Requests that run or wait under it end there, and its seats follow
    /// when the last one has ended, or after half a minute.
    pub fn end_canary(&self) {
        let shared = self.shared();
        shared.end_canary(&mut shared.canary.control());
    }

    /// What the canary is doing, or why it has returned; `None` if there was none, or if it was ended.
    pub fn canary_state(&self) -> Option<CanaryState> {
        self.shared().canary_state()
    }

    /// How many canaries have returned by themselves.
    pub fn canary_returns(&self) -> u64 {
        self.shared().canary.control().returns
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// How many of the seats are the canary's: its part, and at least what the levels of both sides need.
    fn canary_seats(&self, objects: &Objects, percent: u8, seats: i64) -> Result<i64, CanaryError> {
        let (controller, _) = self.controlled();
        let needed = controller.seats_min();
        let needed_canary = controller.check_seats(objects, 0).err().map_or(1, |missing| missing.levels.len().max(1));
        let needed_canary = u32::try_from(needed_canary).unwrap_or(u32::MAX);
        if seats < i64::from(needed) + i64::from(needed_canary) {
            return Err(CanaryError::TooFewSeats { seats, needed, needed_canary });
        }
        let part = (seats * i64::from(percent) + 50) / 100;
        Ok(part.clamp(needed_canary.into(), seats - i64::from(needed)))
    }

    pub(crate) fn canary_state(&self) -> Option<CanaryState> {
        match self.canary.running() {
            Some(canary) => Some(canary.state(self.now())),
            None => self.canary.control().returned.clone(),
        }
    }

    /// The state of the canary, and how many canaries have returned by themselves.
    #[cfg(feature = "metrics")]
    pub(crate) fn canary_state_and_returns(&self) -> Option<(CanaryState, u64)> {
        let state = self.canary_state()?;
        Some((state, self.canary.control().returns))
    }

    fn build_canary(
        &self,
        objects: Objects,
        settings: CanarySettings,
        seats: i64,
        tally: &Arc<CanaryTally>,
        borrowing: Borrowing,
    ) -> FlowControl {
        let mut division = self.division.clone();
        division.borrowing = Some(settings.borrowing.unwrap_or(borrowing));
        let mut listeners = Listeners::default();
        let counted = Arc::clone(tally);
        listeners.others.push(Arc::new(move |_, _| Box::new(TallyListener(Arc::clone(&counted)))));
        FlowControl::new(Setup {
            preset: self.preset,
            concurrency: Concurrency::Fixed(u32::try_from(seats).unwrap_or(u32::MAX)),
            learnt: None,
            division,
            listeners,
            wait_limit: self.wait_limit(),
            revoke_after: self.upkeep().revoker.after(),
            // Access logs compare the times of both.
            clock: self.upkeep().clock.clone(),
            exempt_paths: self.exempt_paths.clone(),
            log: self.log.clone(),
            objects,
        })
    }

    fn end_canary(&self, control: &mut CanaryControl) {
        control.returned = None;
        if let Some(canary) = self.canary.running() {
            self.canary.set(None);
            control.watch = None;
            control.ending = Some((canary, self.now() + ENDING_MAX));
            control.next_look = Some(self.now());
        }
    }

    /// Looks at the canary, if that is due; tells when it is due next. No lock is held.
    pub(crate) fn look_at_canary(&self) -> Option<Instant> {
        let now = self.now();
        let mut control = self.canary.control();
        let next = control.next_look?;
        let running = self.canary.running();
        let all = running.iter().chain(control.ending.iter().map(|(canary, _)| canary));
        // A canary that has no keeper of its own is driven from here.
        let driven = all.filter(|canary| !canary.flow.shared().upkeep().has_keeper());
        let due = driven.map(|canary| canary.flow.tick()).min().filter(|pause| *pause < Duration::MAX);
        let due = due.map(|pause| now + nanos(pause));
        if now < next {
            return due.into_iter().chain([next]).min();
        }
        if let Some(canary) = running {
            canary.flow.deliver_events();
            let counts = canary.tally.counted().counts;
            if let Some(reason) = control.watch.as_mut().and_then(|watch| watch.look(counts)) {
                self.take_back(&mut control, &canary, reason);
            }
        }
        let is_over = |(canary, until): &mut (Arc<Canary>, Instant)| now >= *until || !canary.flow.is_busy();
        if control.ending.take_if(is_over).is_some() {
            self.set_limit(control.seats);
        }
        let has_more = self.canary.is_on() || control.ending.is_some();
        control.next_look = has_more.then(|| now + LOOK);
        due.into_iter().chain(control.next_look).min()
    }

    /// Ends the canary, and takes its seats at once.
    pub(crate) fn drop_canary(&self) {
        let mut control = self.canary.control();
        self.end_canary(&mut control);
        control.next_look = None;
        if control.ending.take().is_some() {
            self.set_limit(control.seats);
        }
    }

    /// The canary is worse than its bounds.
    fn take_back(&self, control: &mut CanaryControl, canary: &Arc<Canary>, reason: ReturnReason) {
        let state = canary.state(self.now());
        self.end_canary(control);
        trace::canary_returns(&self.log, &reason);
        control.returns += 1;
        control.returned =
            Some(CanaryState { phase: CanaryPhase::Returned, returned: Some(reason.to_string()), ..state });
    }

    /// There are so many seats for both from now on; tells how many are left for this flow control.
    pub(crate) fn split_seats(&self, seats: u32) -> u32 {
        let mut control = self.canary.control();
        let Some(canary) = self.canary.running() else {
            control.ending = None;
            return seats;
        };
        let (total, percent) = (i64::from(seats), canary.settings.percent);
        let own = { canary.flow.shared().controlled().0.objects().clone() };
        let Ok(of_canary) = self.canary_seats(&own, percent, total) else {
            self.end_canary(&mut control);
            control.ending = None;
            return seats;
        };
        control.seats = total;
        canary.flow.shared().set_limit(of_canary);
        u32::try_from(total - of_canary).unwrap_or(seats)
    }

    /// Requests wait as long as those of the others.
    pub(crate) fn set_canary_wait_limit(&self, limit: Duration) {
        if let Some(canary) = self.canary.running() {
            canary.flow.set_wait_limit(limit);
        }
    }
}

// === impl Canary ===

impl Canary {
    /// Whether a flow is one of its own, by the flow's hash.
    pub(super) fn has_flow(&self, flow_key: u64) -> bool {
        let turned = (flow_key ^ TURN).wrapping_mul(TURN);
        (turned >> 32) % 100 < u64::from(self.settings.percent)
    }

    #[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
    fn state(&self, now: Instant) -> CanaryState {
        self.flow.deliver_events();
        let counted = self.tally.counted();
        let part = |part| counted.wait.percentile(part) as f64 / MILLISECOND as f64;
        CanaryState {
            phase: CanaryPhase::Running,
            percent: self.settings.percent,
            seats: self.flow.shared().seat_limit(),
            seconds: (now - self.since).max(0) as f64 / SECOND as f64,
            requests: counted.counts.requests,
            rejected: counted.counts.rejected,
            wait_p50: part(0.5),
            wait_p99: part(0.99),
            returned: None,
        }
    }
}

// === impl CanarySettings ===

impl Default for CanarySettings {
    /// Ten percent.
    fn default() -> Self {
        Self { percent: 10, borrowing: None, bounds: CanaryBounds::default() }
    }
}
