//! The random arrivals and service times of one flow.

use evenkeel_engine::time::{Nanos, SECOND};

use super::{Arrivals, FlowGroup, RecordedRequest};
use crate::random::{DrawPurpose, Random};

/// The arrivals and service times of one flow. They depend on the seed and on the name and number of the flow, and on nothing
/// else: a client of a real server can draw the same.
#[derive(Debug, Clone)]
pub struct Draws {
    arrivals: Random,
    services: Random,
    costs: Random,
    retries: Random,
    /// How many arrivals and service times of a recording were taken.
    arrivals_taken: usize,
    services_taken: usize,
}

// === impl Draws ===

impl Draws {
    /// The draws of the flow of that number of a group.
    pub fn new(seed: u64, group: &FlowGroup, number: u32) -> Self {
        let stream = |purpose| Random::stream(seed, &group.name, number, purpose);
        Self {
            arrivals: stream(DrawPurpose::Arrivals),
            services: stream(DrawPurpose::ServiceTimes),
            costs: stream(DrawPurpose::Costs),
            retries: stream(DrawPurpose::Retries),
            arrivals_taken: 0,
            services_taken: 0,
        }
    }

    /// When the first request arrives, and how many more arrive with it; `None` if none does.
    pub fn first_arrival(&mut self, group: &FlowGroup) -> Option<(Nanos, u32)> {
        let from = group.from;
        let (at, more) = match &group.arrivals {
            Arrivals::Closed { clients, .. } => (from, clients - 1),
            Arrivals::Poisson { rate } => (from + self.arrivals.exponential(nanos_between(*rate)), 0),
            Arrivals::Periodic { .. } => (from, 0),
            Arrivals::Burst { at, requests } => (from.max(*at), requests - 1),
            Arrivals::Recorded(requests) => (self.next_recorded(requests)?, 0),
        };
        (at < group.to).then_some((at, more))
    }

    /// When the request after that one arrives, if that depends on time alone.
    pub fn next_arrival(&mut self, group: &FlowGroup, at: Nanos) -> Option<Nanos> {
        let next = match &group.arrivals {
            Arrivals::Poisson { rate } => at + self.arrivals.exponential(nanos_between(*rate)),
            Arrivals::Periodic { every } => at + every,
            Arrivals::Recorded(requests) => self.next_recorded(requests)?.max(at),
            Arrivals::Closed { .. } | Arrivals::Burst { .. } => return None,
        };
        (next < group.to).then_some(next)
    }

    /// How long the service works on the next request.
    pub fn service(&mut self, group: &FlowGroup) -> Nanos {
        let Arrivals::Recorded(requests) = &group.arrivals else { return group.service.draw(&mut self.services) };
        let request = requests.get(self.services_taken);
        self.services_taken += 1;
        request.map_or(0, |request| request.service.max(0))
    }

    fn next_recorded(&mut self, requests: &[RecordedRequest]) -> Option<Nanos> {
        let request = requests.get(self.arrivals_taken)?;
        self.arrivals_taken += 1;
        Some(request.at)
    }

    /// What the request costs whose [service time](Self::service) was drawn last; 0 if the workload does not say.
    pub fn cost(&mut self, group: &FlowGroup) -> Nanos {
        let Some(cost) = &group.cost else { return 0 };
        if let Arrivals::Recorded(requests) = &group.arrivals {
            // Its service time was taken before.
            let request = self.services_taken.checked_sub(1).and_then(|place| requests.get(place));
            return request.map_or(0, |request| request.cost.max(0));
        }
        cost.draw_any(&mut self.costs).max(0)
    }

    /// A pause between the two, both included.
    pub(crate) fn pause(&mut self, least: Nanos, most: Nanos) -> Nanos {
        self.retries.between(least, most)
    }
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds in a second")]
fn nanos_between(rate: f64) -> f64 {
    SECOND as f64 / rate
}
