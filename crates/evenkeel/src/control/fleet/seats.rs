//! Sets the seats of a flow control to the allowance of its fleet.

use evenkeel_fleet::{Allowance, MemberEvent};

use super::gate::Allowed;
use crate::control::flow_control::{Change, FlowControlShared};
use crate::control::trace;

// === impl FlowControlShared ===

impl FlowControlShared {
    /// Sets the allowance of this instance. When the method returns, nothing starts above the allowance.
    pub(crate) fn allow(&self, allowance: Allowance) {
        // The end of the previous allowance must not be forgotten: see `StartGate::forbids`.
        self.settle_allowance();
        self.upkeep().gate.set(allowance);
        self.settle_allowance();
    }

    /// Puts the allowance as of this moment into effect. A request that waits for it does not start before that.
    pub(crate) fn settle_allowance(&self) {
        if let Some(Allowed { footing, seats, .. }) = self.apply_allowance() {
            trace::fleet_footing(footing, seats);
            if let Some(membership) = self.fleet.get() {
                membership.note(MemberEvent::FootingChanged { footing, seats: seats.into() });
            }
        }
    }

    /// Applies the allowance. Returns it if it is worth an event.
    fn apply_allowance(&self) -> Option<Allowed> {
        let (gate, clock) = (&self.upkeep().gate, &self.upkeep().clock);
        {
            let (controller, _) = self.controlled();
            let now = clock.now();
            let allowed = gate.allowed(clock.boot_time())?;
            if controller.server_limit() == i64::from(allowed.seats) {
                return gate.rearm(now, allowed).then_some(allowed);
            }
        }
        let mut news = None;
        self.change(|controller, changes, now| {
            if let Some(allowed) = gate.allowed(clock.boot_time()) {
                // Some levels may have no seat here, which says nothing about the fleet.
                controller.set_server_limit(allowed.seats.into(), changes, now);
                news = gate.rearm(now, allowed).then_some(allowed);
            }
            Change::Division
        });
        news
    }

    /// Whether more seats are in use than are allowed: a request that was about to run when the process was stopped must not run any more.
    pub(crate) fn is_overdrawn(&self) -> bool {
        let limit = self.controlled().0.server_limit();
        i64::try_from(self.limited_seats_in_use()).unwrap_or(i64::MAX) > limit
    }
}
