//! The metrics of an instance of a fleet (FL-14). A flow control that shares its seats with nobody has no series.

use std::fmt;

use evenkeel_fleet::Footing;

use super::{Copied, FlowName, Metric, Writer, names};
use crate::control::fleet::FleetState;

const FOOTINGS: [Footing; 3] = [Footing::Grant, Footing::Floor, Footing::Nothing];

// === impl Writer ===

impl Writer<'_, '_> {
    pub(super) fn fleets(&mut self) -> fmt::Result {
        self.fleet_gauge(names::FLEET_CALL, |fleet| fleet.status.call_time.as_secs_f64())?;
        self.fleet_count(names::FLEET_CONFLICTS, |fleet| fleet.conflicts)?;
        self.fleet_count(names::FLEET_FAILED_CALLS, |fleet| fleet.failed_calls)?;
        self.fleet_gauge(names::FLEET_FLOOR, |fleet| float(fleet.status.allowance.floor))?;
        let mut family = self.out.family(names::FLEET_FOOTING)?;
        for (name, fleet) in fleets(&self.copies) {
            for footing in FOOTINGS {
                family.gauge(name, &[("footing", footing.as_str())], i64::from(footing == fleet.footing))?;
            }
        }
        self.fleet_gauge(names::FLEET_GRANTED, |fleet| float(fleet.seats))?;
        self.fleet_gauge(names::FLEET_HELD, |fleet| float(fleet.status.seats_held))?;
        self.fleet_gauge(names::FLEET_IN_USE, |fleet| float(fleet.seats_in_use))?;
        self.fleet_gauge(names::FLEET_INSTANCES, |fleet| float(fleet.status.instances as u64))?;
        self.fleet_count(names::FLEET_REGISTRATIONS, |fleet| fleet.registrations)?;
        self.fleet_gauge(names::FLEET_REVISION, |fleet| float(fleet.status.ledger_revision))?;
        self.fleet_gauge(names::FLEET_ROUND, |fleet| fleet.status.round_time.unwrap_or_default().as_secs_f64())?;
        self.fleet_gauge(names::FLEET_SEATS, |fleet| float(fleet.status.seats))
    }

    fn fleet_gauge(&mut self, metric: Metric, value: impl Fn(&FleetState) -> f64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, fleet) in fleets(&self.copies) {
            match name {
                Some(_) => family.float_gauge(name, &[], value(fleet))?,
                None => family.lone_gauge(value(fleet))?,
            }
        }
        Ok(())
    }

    fn fleet_count(&mut self, metric: Metric, value: impl Fn(&FleetState) -> u64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, fleet) in fleets(&self.copies) {
            family.count_from_zero(name, &[], value(fleet))?;
        }
        Ok(())
    }
}

fn fleets<'a>(copies: &'a [Copied<'a>]) -> impl Iterator<Item = (Option<FlowName<'a>>, &'a FleetState)> {
    copies.iter().filter_map(|copied| Some((copied.name, copied.fleet.as_ref()?)))
}

#[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
fn float(count: u64) -> f64 {
    count as f64
}
