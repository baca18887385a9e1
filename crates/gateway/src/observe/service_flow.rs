//! `ServiceFlow`: the flow control of a service, and the figures of several of them together.

use std::sync::Arc;

use evenkeel::FlowControl;
use evenkeel::status::{LevelFlows, Reading};

/// The flow control of a service.
///
/// Not `#[non_exhaustive]`: code that runs the admin endpoint makes it.
#[derive(Debug, Clone)]
pub struct ServiceFlow {
    /// The name of the service. Without services there is none.
    pub service: Option<Arc<str>>,
    /// The flow control that its requests go through.
    pub flow: FlowControl,
}

// === impl ServiceFlow ===

impl ServiceFlow {
    /// The name of a level beside those of other services: `shop/paying`.
    fn shown(&self, level: &str) -> Arc<str> {
        match &self.service {
            Some(service) => format!("{service}/{level}").into(),
            None => level.into(),
        }
    }

    /// The numbers of all of them, as if they were one. Levels have the names of their services.
    pub(crate) fn reading(all: &[Self]) -> Option<Reading> {
        let mut readings = all.iter().map(|one| {
            let mut reading = one.flow.reading();
            for level in reading.levels.iter_mut().filter(|_| one.service.is_some()) {
                level.name = one.shown(&level.name);
            }
            reading
        });
        let mut sum = readings.next()?;
        for reading in readings {
            sum.concurrency += reading.concurrency;
            sum.levels.extend(reading.levels);
        }
        sum.levels.sort_by(|one, other| one.name.cmp(&other.name));
        Some(sum)
    }

    /// The flows of a level that is shown by this name.
    pub(crate) fn flows_of(all: &[Self], shown: &str, count: usize) -> Option<LevelFlows> {
        all.iter().find_map(|one| {
            let level = match &one.service {
                Some(service) => shown.strip_prefix(&**service)?.strip_prefix('/')?,
                None => shown,
            };
            let mut flows = one.flow.flows_of(level, count)?;
            shown.clone_into(&mut flows.level);
            Some(flows)
        })
    }
}
