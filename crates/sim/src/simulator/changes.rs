//! What changes while a simulation runs: the server's objects and settings, the service, and requests.

use evenkeel_engine::borrowing::SeatDivision;
use evenkeel_engine::controller::{Borrowing, Objects};
use evenkeel_engine::time::{Instant, Nanos};
use evenkeel_engine::{ApplyReport, Engine, Ticket};

use super::{EngineEvents, Job, Simulator};
use crate::outcome::{Outcomes, RunningChange};

impl<T: Copy> Simulator<T> {
    /// The server follows these objects from now on.
    pub fn apply(&mut self, at: Nanos, objects: Objects, outcomes: &mut impl Outcomes<T>) -> ApplyReport {
        self.change_server(at, outcomes, |engine, now, happened| engine.apply(objects, now, happened))
    }

    /// The server has so many seats from now on.
    pub fn set_seats(&mut self, at: Nanos, seats: i64, outcomes: &mut impl Outcomes<T>) {
        self.change_server(at, outcomes, |engine, now, happened| engine.set_server_limit(seats, now, happened));
    }

    /// Levels borrow in this way from now on.
    pub fn set_borrowing(&mut self, at: Nanos, borrowing: Borrowing, outcomes: &mut impl Outcomes<T>) {
        self.change_server(at, outcomes, |engine, now, happened| engine.set_borrowing(borrowing, now, happened));
    }

    /// Seats are kept for newcomers that would wait for longer than this from now on.
    pub fn set_newcomer_wait(&mut self, at: Nanos, wait: Nanos, outcomes: &mut impl Outcomes<T>) {
        self.change_server(at, outcomes, |engine, now, happened| engine.set_newcomer_wait(wait, now, happened));
    }

    /// Everything that is due by then happens first.
    fn change_server<R>(
        &mut self,
        at: Nanos,
        outcomes: &mut impl Outcomes<T>,
        change: impl FnOnce(&mut Engine<Job<T>, SeatDivision>, Instant, &mut EngineEvents<T>) -> R,
    ) -> R {
        self.run_until(at, outcomes);
        let now = self.begin_event(at);
        let result = change(&mut self.engine, now, &mut self.happened);
        self.follow_configuration();
        self.settle(outcomes);
        result
    }

    /// The service works on so many requests at a time from now on; `None` for no limit of its own.
    pub fn set_slots(&mut self, at: Nanos, slots: Option<u32>, outcomes: &mut impl Outcomes<T>) {
        self.run_until(at, outcomes);
        self.begin_event(at);
        self.service.set_slots(self.now, slots);
    }

    /// From now on, all requests fail that start, or none.
    pub fn set_failing(&mut self, at: Nanos, is_failing: bool, outcomes: &mut impl Outcomes<T>) {
        self.run_until(at, outcomes);
        self.begin_event(at);
        self.service.set_failing(is_failing);
    }

    /// Changes a request, if it runs. Everything that is due by then happens first.
    pub fn change(&mut self, at: Nanos, ticket: Ticket, change: RunningChange, outcomes: &mut impl Outcomes<T>) {
        self.run_until(at, outcomes);
        let now = self.begin_event(at);
        self.change_running(now, ticket, change);
        self.settle(outcomes);
    }

    pub(super) fn change_running(&mut self, now: Instant, ticket: Ticket, change: RunningChange) {
        match change {
            RunningChange::Seats(seats) => {
                self.engine.set_seats(now, ticket, seats, &mut self.happened);
                self.look_at(ticket.level, 0);
            }
            RunningChange::Charge(seat_time) => {
                self.engine.charge(now, ticket, seat_time, &mut self.happened);
            }
        }
    }
}
