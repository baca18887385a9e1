//! The metrics of limits that find themselves (AL-7). A flow control whose number of seats was set has no series.

use std::fmt;

use evenkeel_engine::auto_limit::{Load, Phase};

use super::{Copied, FlowName, Metric, Writer, names};
use crate::control::limit::LimitState;

// === impl Writer ===

impl Writer<'_, '_> {
    pub(super) fn limits(&mut self) -> fmt::Result {
        self.limit_gauge(names::LIMIT, |limit| Some(limit.status.limit))?;
        self.limit_gauge(names::LIMIT_APPLIED, |limit| Some(limit.status.applied.into()))?;
        self.limit_gauge(names::LIMIT_CEILING, |limit| limit.status.ceiling)?;
        self.limit_gauge(names::LIMIT_ROOM, |limit| Some(limit.status.room))?;
        self.limit_gauge(names::LIMIT_ELASTICITY, |limit| Some(limit.status.elasticity?.value))?;
        self.limit_gauge(names::LIMIT_DEVIATION, |limit| Some(limit.status.elasticity?.deviation))?;
        self.limit_gauge(names::LIMIT_HELD, |limit| Some(u8::from(limit.is_held_down).into()))?;
        self.limit_gauge(names::LIMIT_KNOWN, |limit| Some(u8::from(limit.status.is_known).into()))?;
        let mut family = self.out.family(names::LIMIT_BOUND)?;
        for (name, limit) in limits(&self.copies) {
            let lower = limit.floor.max(*limit.bounds.start());
            for (bound, seats) in [("lower", lower), ("upper", lower.max(*limit.bounds.end()))] {
                family.gauge(name, &[("bound", bound)], seats.into())?;
            }
        }
        let mut family = self.out.family(names::LIMIT_PHASE)?;
        for (name, limit) in limits(&self.copies).filter(|(_, limit)| limit.found_by.is_none()) {
            for phase in Phase::ALL {
                let is_it = i64::from(phase == limit.status.phase);
                family.gauge(name, &[("phase", phase.as_str())], is_it)?;
            }
        }
        let mut family = self.out.family(names::LIMIT_LOAD)?;
        for (name, limit) in limits(&self.copies).filter(|(_, limit)| limit.found_by.is_none()) {
            for load in Load::ALL {
                family.gauge(name, &[("load", load.as_str())], i64::from(load == limit.status.load))?;
            }
        }
        let mut family = self.out.family(names::LIMIT_CHANGES)?;
        for (name, limit) in limits(&self.copies) {
            for (reason, count) in &limit.counts {
                family.count(name, &[("reason", reason)], *count)?;
            }
        }
        Ok(())
    }

    fn limit_gauge(&mut self, metric: Metric, value: impl Fn(&LimitState) -> Option<f64>) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, limit) in limits(&self.copies) {
            match (name, value(limit)) {
                (_, None) => {}
                (Some(_), Some(value)) => family.float_gauge(name, &[], value)?,
                (None, Some(value)) => family.lone_gauge(value)?,
            }
        }
        Ok(())
    }
}

fn limits<'a>(copies: &'a [Copied<'a>]) -> impl Iterator<Item = (Option<FlowName<'a>>, &'a LimitState)> {
    copies.iter().filter_map(|copied| Some((copied.name, copied.limit.as_ref()?)))
}
