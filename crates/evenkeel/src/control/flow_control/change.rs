//! Changes of how seats are divided: by operators, by new objects, and when they are due.

use std::sync::Arc;
use std::time::Duration;

use evenkeel_engine::controller::{Applied, Borrowing, Objects, TooFewSeats};
use evenkeel_engine::time::Instant;

use super::{FlowControl, FlowControlShared, ObjectsReport};
use crate::control::clock::nanos;
use crate::control::flight::{FlightChange, LENGTH_MAX};
use crate::control::recorder::changes_of_objects;
use crate::control::seat_division::{SeatController, preset_borrowing};
use crate::control::snapshot::{LevelChanges, Snapshot};
use crate::control::trace;
use crate::control::wakers::Wakers;

/// A change by the controller.
pub(crate) enum Change {
    /// At most how the seats are divided.
    Division,
    /// The number of seats, and whether they are too few.
    Seats(Option<TooFewSeats>),
    /// The objects.
    Objects(Box<Applied>),
    /// A consequence of the same objects: an idle level is gone, or the wait of newcomers is another one.
    Consequences(Box<Applied>),
}

// === impl FlowControl ===

impl FlowControl {
    /// The server has so many seats in all from now on: see [`FlowControlBuilder::server_concurrency`](crate::FlowControlBuilder::server_concurrency). They are divided among
    /// the levels at once. Requests that run go on, and where there are fewer seats than they take, no other request starts until
    /// enough of them have ended. A limit that found itself does so no longer. Nothing changes in a fleet, which says how many seats
    /// each instance has.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    ///
    /// let flow = FlowControl::builder().server_concurrency(100).build();
    /// let seats = || flow.status().iter().map(|level| level.current_limit).sum::<i64>();
    /// let before = seats();
    /// flow.set_server_concurrency(200);
    /// assert!(seats() > before);
    /// ```
    pub fn set_server_concurrency(&self, seats: u32) {
        if self.shared.is_in_fleet() {
            return;
        }
        if seats == 0 {
            trace::no_seats();
        }
        self.shared.stop_finding();
        self.shared.set_limit(self.shared.split_seats(seats).into());
    }

    /// Levels borrow seats from each other in this way from now on; `None`: as the preset does. See
    /// [`FlowControlBuilder::borrowing`](crate::FlowControlBuilder::borrowing).
    /// Requests that run go on, and requests that wait keep their places (BM-3). Nothing changes in a fleet, where levels borrow at once.
    pub fn set_borrowing(&self, borrowing: impl Into<Option<Borrowing>>) {
        // A fleet needs levels that never use more seats than there are.
        if self.shared.is_in_fleet() {
            return;
        }
        let borrowing = borrowing.into().unwrap_or_else(|| preset_borrowing(self.preset()));
        let before = self.borrowing();
        self.shared.change(|controller, changes, now| {
            controller.set_borrowing(borrowing, changes, now);
            Change::Division
        });
        if before != borrowing {
            self.shared.record_setting(|| FlightChange {
                what: format!("borrowing became {borrowing}, and was {before}"),
                borrowing: Some([before.to_string(), borrowing.to_string()]),
                ..FlightChange::default()
            });
        }
    }

    /// How levels borrow seats from each other.
    pub fn borrowing(&self) -> Borrowing {
        self.shared.control().controller.borrowing()
    }

    /// How long newcomers may have to wait for a seat from now on before some are kept for them: see
    /// [`FlowControlBuilder::newcomer_wait`](crate::FlowControlBuilder::newcomer_wait).
    pub fn set_newcomer_wait(&self, wait: Duration) {
        let (told, wait) = (wait, nanos(wait));
        let mut before = wait;
        self.shared.change(|controller, changes, now| {
            before = controller.newcomer_wait();
            if before == wait {
                return Change::Division;
            }
            Change::Consequences(Box::new(controller.set_newcomer_wait(wait, changes, now)))
        });
        if before != wait {
            self.shared.record_setting(|| FlightChange {
                what: format!("seats are kept for newcomers that would wait for {told:?}"),
                newcomer_wait: Some([before, wait].map(|wait| wait.clamp(0, LENGTH_MAX))),
                ..FlightChange::default()
            });
        }
    }

    /// Does what is due: frees the seats of requests that have lingered, rejects requests that have waited as long as they
    /// may, divides the seats among the levels every ten seconds, looks for the right number of seats if it was not set, and removes
    /// levels that have run out of requests. Returns the time until something is due again, if nothing else happens before.
    ///
    /// A flow control that was [built](crate::FlowControlBuilder::build) inside of a tokio runtime calls this by itself.
    pub fn tick(&self) -> Duration {
        self.shared.tick()
    }

    /// Divides the seats among the levels now, whenever it was done last.
    pub fn adjust(&self) {
        self.shared.adjust();
    }
}

// === impl FlowControlShared ===

impl FlowControlShared {
    /// Lets the controller change the levels, and puts a new snapshot in place if there is a new configuration. Returns the new
    /// report on the objects, if they changed.
    pub(crate) fn change(
        &self,
        change: impl FnOnce(&mut SeatController, &mut LevelChanges, Instant) -> Change,
    ) -> ObjectsReport {
        let mut control = self.control();
        let now = self.upkeep.clock.now();
        let table = self.snapshot.load().levels.clone();
        let (listeners, clock) = (control.listeners.clone(), self.upkeep.clock.clone());
        let (ledger, preset) = (Arc::clone(&control.ledger), self.preset);
        let mut changes = LevelChanges { table, wakers: Wakers::default(), listeners, clock, ledger, preset };
        let seats_before = control.controller.server_limit();
        let objects_before = self.recorder.is_on().then(|| control.controller.objects().clone());
        let change = change(&mut control.controller, &mut changes, now);
        if let Some(objects) = &objects_before {
            self.record_change(&change, (objects, seats_before), &control.controller, now);
        }
        self.known_levels.update(&control.controller, &changes.table, now, &self.upkeep);
        let division = trace::Division::of(&control.controller);
        let mut is_to_go = false;
        let report = match change {
            Change::Division => control.report.clone(),
            Change::Seats(too_few_seats) => ObjectsReport { too_few_seats, ..control.report.clone() },
            Change::Objects(applied) | Change::Consequences(applied) => {
                let Applied { configuration, mut dangling, unusable, not_understood, too_few_seats, .. } = *applied;
                // A part of the fleet's seats need not have one for each level.
                let too_few_seats = too_few_seats.filter(|_| !self.is_in_fleet());
                for (_, level) in control.controller.levels() {
                    if let Some(found) = changes.table.get(level.id()) {
                        found.set_quiescing(level.is_quiescing());
                        // The last request of the level may have ended after the controller looked and before the level was marked.
                        is_to_go |= level.is_quiescing() && found.lock().queue_set().is_idle();
                    }
                }
                self.snapshot.store(Arc::new(Snapshot::new(configuration, changes.table, &self.upkeep, self.preset)));
                // There may be thousands of schemas, and nearly all have their level.
                dangling.retain(|schema| schema.is_dangling);
                dangling.shrink_to_fit();
                ObjectsReport { dangling, unusable, not_understood, too_few_seats }
            }
        };
        let before = std::mem::replace(&mut control.report, report.clone());
        let news = report.news_since(&before);
        // Tasks that are woken and loggers may call the flow control, so its lock must be free.
        drop(control);
        if is_to_go {
            self.upkeep.note_idle_level();
        }
        changes.wakers.wake();
        division.tell();
        if self.log.warns_of_objects {
            trace::dangling(&news.dangling);
            trace::unusable(&news.unusable);
            trace::not_understood(&news.not_understood);
        }
        trace::too_few_seats(news.too_few_seats.as_ref());
        report
    }

    /// There are so many seats, without those of a canary.
    pub(crate) fn set_limit(&self, seats: i64) {
        self.change(|controller, changes, now| Change::Seats(controller.set_server_limit(seats, changes, now)));
    }

    /// Tells the recorder what is different from the objects and the seats of before.
    fn record_change(
        &self,
        change: &Change,
        (objects, before): (&Objects, i64),
        controller: &SeatController,
        now: Instant,
    ) {
        let (at, after) = (now.as_nanos(), controller.server_limit());
        if after != before {
            let what = format!("{before} seats became {after}");
            let change = FlightChange { at, what, ..FlightChange::default() };
            self.recorder.tell_change(FlightChange { seats_before: Some(before), seats: Some(after), ..change });
        }
        if matches!(change, Change::Objects(_))
            && let Some(what) = changes_of_objects(objects, controller.objects())
        {
            self.recorder.tell_change(FlightChange { at, what, changes_objects: true, ..FlightChange::default() });
        }
    }

    /// Tells the recorder that a setting has changed, in a few words.
    pub(super) fn record_setting(&self, change: impl FnOnce() -> FlightChange) {
        if self.recorder.is_on() {
            self.recorder.tell_change(FlightChange { at: self.now().as_nanos(), ..change() });
        }
    }

    pub(crate) fn tick(&self) -> Duration {
        let next_in_levels = self.upkeep.handle_timeouts();
        if self.upkeep.take_idle_note() {
            self.remove_idle_levels();
        }
        let next_look = self.find_limit().into_iter().chain(self.revoke()).min();
        let next_of_canary = self.look_at_canary();
        let now = self.upkeep.clock.now();
        let is_due = self.next_division().is_some_and(|next| next <= now);
        if is_due {
            self.change(|controller, changes, now| {
                controller.handle_timeout(changes, now);
                Change::Division
            });
        }
        let next = next_in_levels.into_iter().chain(self.next_division()).chain(next_look).chain(next_of_canary).min();
        next.map_or(Duration::MAX, |next| Duration::from_nanos(u64::try_from(next - now).unwrap_or(0)))
    }

    fn adjust(&self) {
        self.change(|controller, changes, now| {
            controller.adjust(changes, now);
            Change::Division
        });
    }

    /// When the seats are to be divided next.
    pub(crate) fn next_division(&self) -> Option<Instant> {
        self.control().controller.next_timeout()
    }

    /// Removes levels that have no object any more and no requests either (CC-15).
    fn remove_idle_levels(&self) {
        self.change(|controller, changes, now| {
            let is_quiescing = controller.levels().any(|(_, level)| level.is_quiescing());
            if !is_quiescing {
                return Change::Division;
            }
            Change::Consequences(Box::new(controller.reapply(changes, now)))
        });
    }
}
