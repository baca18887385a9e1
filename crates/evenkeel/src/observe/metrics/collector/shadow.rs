//! The metrics of a shadow and of a canary (SH-3, SH-5). A flow control that has none of them has no series.

use std::fmt;

use super::{Copied, FlowName, Metric, Writer, names};
use crate::control::canary::CanaryState;
use crate::control::shadow::ShadowTotals;

/// So many pairs of levels have a series: those between which most requests would move.
const MOVED_MAX: usize = 50;

// === impl Writer ===

impl Writer<'_, '_> {
    pub(super) fn shadows(&mut self) -> fmt::Result {
        self.shadow_count(names::SHADOW_REQUESTS, |shadow| shadow.requests)?;
        self.shadow_count(names::SHADOW_DROPPED, |shadow| shadow.dropped)?;
        let mut family = self.out.family(names::SHADOW_REJECTED)?;
        for (name, shadow) in shadows(&self.copies) {
            for (side, rejected) in [("real", shadow.rejected.real), ("shadow", shadow.rejected.shadow)] {
                family.count(name, &[("side", side)], rejected)?;
            }
        }
        let mut family = self.out.family(names::SHADOW_MOVED)?;
        for (name, shadow) in shadows(&self.copies) {
            for moved in shadow.moved.iter().take(MOVED_MAX) {
                family.count(name, &[("from", &moved.from), ("to", &moved.to)], moved.requests)?;
            }
        }
        let mut family = self.out.family(names::SHADOW_WAIT)?;
        for (name, shadow) in shadows(&self.copies) {
            for (side, wait) in [("real", shadow.wait.real), ("shadow", shadow.wait.shadow)] {
                for (quantile, ms) in [("0.5", wait.p50), ("0.99", wait.p99)] {
                    family.float_gauge(name, &[("quantile", quantile), ("side", side)], ms / 1000.0)?;
                }
            }
        }
        Ok(())
    }

    fn shadow_count(&mut self, metric: Metric, value: impl Fn(&ShadowTotals) -> u64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, shadow) in shadows(&self.copies) {
            family.count(name, &[], value(shadow))?;
        }
        Ok(())
    }

    /// The counters of the canary, also of one that has returned, until the next one begins.
    pub(super) fn canaries(&mut self) -> fmt::Result {
        self.canary_count(names::CANARY_REQUESTS, |(state, _)| state.requests)?;
        self.canary_count(names::CANARY_REJECTED, |(state, _)| state.rejected)?;
        self.canary_count(names::CANARY_RETURNS, |(_, returns)| *returns)?;
        let mut family = self.out.family(names::CANARY_SEATS)?;
        for (name, (state, _)) in canaries(&self.copies) {
            #[expect(clippy::cast_precision_loss, reason = "a metric is a binary64")]
            let seats = if state.returned.is_some() { 0.0 } else { state.seats as f64 };
            match name {
                Some(_) => family.float_gauge(name, &[], seats)?,
                None => family.lone_gauge(seats)?,
            }
        }
        Ok(())
    }

    fn canary_count(&mut self, metric: Metric, value: impl Fn(&(CanaryState, u64)) -> u64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, canary) in canaries(&self.copies) {
            family.count(name, &[], value(canary))?;
        }
        Ok(())
    }
}

fn shadows<'a>(copies: &'a [Copied<'a>]) -> impl Iterator<Item = (Option<FlowName<'a>>, &'a ShadowTotals)> {
    copies.iter().filter_map(|copied| Some((copied.name, copied.shadow.as_ref()?)))
}

fn canaries<'a>(copies: &'a [Copied<'a>]) -> impl Iterator<Item = (Option<FlowName<'a>>, &'a (CanaryState, u64))> {
    copies.iter().filter_map(|copied| Some((copied.name, copied.canary.as_ref()?)))
}
