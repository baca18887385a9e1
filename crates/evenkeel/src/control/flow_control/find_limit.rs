//! The limit that finds itself: turned on and off, driven, and reported.

use evenkeel_engine::auto_limit::{AutoLimit, Concurrency, Learnt};
use evenkeel_engine::queue_set::Mode;
use evenkeel_engine::time::Instant;
#[cfg(feature = "fleet")]
use evenkeel_fleet::{FoundSeats, LimitInput};

use super::change::Change;
use super::{Control, FlowControl, FlowControlShared, SeatController};
use crate::control::core::LevelCore;
use crate::control::limit::{Finder, LevelSums, LimitState, LimitTick};
use crate::control::trace;

// === impl FlowControl ===

impl FlowControl {
    /// The server has so many seats from now on, or finds out how many it should have. Requests that run go on, and requests that
    /// wait keep their places.
    ///
    /// A limit that begins to find itself starts where the number was, and one that gets other bounds keeps what it has learnt.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency(100).drive_by_hand().build();
    /// flow.set_concurrency("auto:10..400".parse().unwrap());
    /// assert_eq!(flow.limit_state().unwrap().status.applied, 100);
    /// ```
    pub fn set_concurrency(&self, concurrency: Concurrency) {
        match concurrency {
            Concurrency::Fixed(seats) => self.set_server_concurrency(seats),
            Concurrency::Auto(_) if self.shared.is_in_fleet() => {}
            Concurrency::Auto(bounds) => {
                self.shared.drop_canary();
                let mut control = self.shared.control();
                let now = self.shared.now();
                let before = control.finder.take();
                let learnt = before.as_ref().and_then(|finder| finder.limit.learnt());
                let present = u32::try_from(control.controller.server_limit()).unwrap_or(u32::MAX);
                let mut finder = Finder::new(AutoLimit::new(bounds, present, learnt), now);
                finder.hold_down(before.is_some_and(|finder| finder.is_held_down()));
                self.shared.begin_to_find(&mut control, finder, now);
                drop(control);
                self.shared.apply_found_limit();
            }
        }
    }

    /// How many seats the server has, or within which bounds it finds that out.
    pub fn concurrency(&self) -> Concurrency {
        let control = self.shared.control();
        let seats = || u32::try_from(control.controller.server_limit()).unwrap_or(u32::MAX);
        let finder = control.finder.as_ref();
        finder.map_or_else(|| Concurrency::Fixed(seats()), |finder| Concurrency::Auto(finder.limit.bounds()))
    }

    /// The limit that finds itself: what it is, and why; `None` if the number of seats was set.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency_auto(1..=1000).drive_by_hand().build();
    /// let limit = flow.limit_state().unwrap();
    /// println!("{} seats", limit.status.applied);
    /// for step in &limit.steps {
    ///     println!("{:?} ago: {}", step.ago, step.change);
    /// }
    /// ```
    pub fn limit_state(&self) -> Option<LimitState> {
        self.shared.limit_state()
    }

    /// What the limit has learnt, to [start with](crate::FlowControlBuilder::learnt_limit) the next time; `None` until it knows the
    /// service, and if the number of seats was set.
    pub fn learnt_limit(&self) -> Option<Learnt> {
        #[cfg(feature = "fleet")]
        if let Some(learnt) = self.shared.limit_learnt_by_fleet() {
            return Some(learnt);
        }
        self.shared.control().finder.as_ref()?.limit.learnt()
    }

    /// Whether the limit has to stay where it is, or go down, whatever requests seem to ask for (AL-10): the service itself says that it
    /// has more to do than it likes. Nothing happens if the number of seats was set.
    pub fn hold_limit(&self, is_held_down: bool) {
        if let Some(finder) = &mut self.shared.control().finder {
            finder.hold_down(is_held_down);
        }
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    pub(crate) fn limit_state(&self) -> Option<LimitState> {
        #[cfg(feature = "fleet")]
        if self.is_in_fleet() {
            return self.limit_state_of_fleet();
        }
        let control = self.control();
        control.finder.as_ref().map(|finder| finder.state(self.upkeep.clock.now()))
    }

    /// The levels sum up what happens there from now on, and the upkeep looks at it.
    pub(super) fn begin_to_find(&self, control: &mut Control, finder: Finder, now: Instant) {
        let pulse = &self.upkeep.pulse;
        for level in self.snapshot.load().levels.iter() {
            let (mut listeners, numbers) = level.listeners_and(|core| core.numbers());
            let mut sums = LevelSums::new(level.id, pulse, now);
            sums.begin_with(numbers);
            listeners.limit = Some(Box::new(sums));
        }
        control.listeners.limit = Some(std::sync::Arc::clone(pulse));
        pulse.start(finder.limit.limit());
        control.finder = Some(finder);
    }

    /// The number of seats was set: nothing is summed up any more.
    pub(super) fn stop_finding(&self) {
        let mut control = self.control();
        if control.finder.take().is_none() {
            return;
        }
        self.upkeep.pulse.stop();
        control.listeners.limit = None;
        for (_, level) in self.known_levels.all() {
            level.listeners().limit = None;
        }
    }

    /// Looks at the sums of all levels, if that is due, and changes the limit if need be. Returns when the next look is due.
    pub(super) fn find_limit(&self) -> Option<Instant> {
        let pulse = &self.upkeep.pulse;
        pulse.pace().span()?;
        let mut control = self.control();
        let Control { controller, finder, .. } = &mut *control;
        let finder = finder.as_mut()?;
        let now = self.upkeep.clock.now();
        let due = finder.due(pulse.pace())?;
        if now < due {
            return Some(due);
        }
        pulse.begin_look();
        let tick = self.what_happened(controller, now);
        let (seats, pace, news) = finder.look(now, &tick);
        pulse.end_look(pace, seats);
        let next = finder.due(pulse.pace());
        let is_changed = i64::from(seats) != controller.server_limit();
        drop(control);
        if is_changed {
            self.apply_found_limit();
        }
        trace::limit_changes(&self.log, &news);
        next
    }

    /// What has happened in all levels since this was last asked.
    fn what_happened(&self, controller: &SeatController, now: Instant) -> LimitTick {
        let mut tick = LimitTick { floor: controller.seats_min(), ..LimitTick::default() };
        for level in self.snapshot.load().levels.iter() {
            let look = |core: &mut LevelCore| (core.numbers(), matches!(core.queue_set().mode(), Mode::Exempt));
            let (mut listeners, (numbers, is_exempt)) = level.listeners_and(look);
            if let Some(sums) = &mut listeners.limit {
                tick.sample.merge(&sums.take(now));
            }
            tick.somebody_waits |= numbers.waiting > 0;
            if !is_exempt {
                tick.limited_seats = tick.limited_seats.saturating_add(numbers.seats_in_use);
            }
        }
        tick
    }

    /// An instance of the fleet finds the limit for all from now on: this one only sums up what happens (FL-13). Returns where the search
    /// begins, and nothing if the number of seats was set.
    #[cfg(feature = "fleet")]
    pub(crate) fn sum_up_for_fleet(&self) -> Option<FoundSeats> {
        let control = self.control();
        let limit = &control.finder.as_ref()?.limit;
        self.upkeep.pulse.stop();
        Some(FoundSeats::unknown(limit.bounds(), limit.limit()).learnt(limit.learnt()))
    }

    /// What the fleet has to know of this instance to find the limit; nothing if the number of seats was set.
    #[cfg(feature = "fleet")]
    pub(crate) fn limit_input(&self) -> Option<LimitInput> {
        let mut control = self.control();
        let Control { controller, finder, .. } = &mut *control;
        let (finder, now) = (finder.as_mut()?, self.upkeep.clock.now());
        let tick = self.what_happened(controller, now);
        let totals = finder.sum_up(now, &tick);
        Some(LimitInput { totals, floor: tick.floor, is_held_down: finder.is_held_down() })
    }

    /// Applies the limit that was found last. A thread that is overtaken by another one applies the limit that the other one
    /// found.
    fn apply_found_limit(&self) {
        self.change(|controller, changes, now| match self.upkeep.pulse.found_seats() {
            Some(seats) => Change::Seats(controller.set_server_limit(seats.into(), changes, now)),
            None => Change::Division,
        });
    }
}
