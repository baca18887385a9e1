//! One part of the demo: all tenants send requests to one address for some time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::burst::Burst;
use super::load::Load;
use super::progress::Progress;
use super::tally::Tally;
use super::tenant::Tenant;
use super::unknown_capacity::UnknownCapacity;
use crate::terminal::milliseconds;

/// The outcome of one part.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) tenants: Vec<(Tenant, Tally)>,
    /// From the first request to the last response.
    pub(crate) took: Duration,
}

/// The outcomes of all parts.
#[derive(Debug)]
pub(crate) struct Parts {
    /// One greedy tenant, which sends to the service directly.
    pub(crate) without: Part,
    /// The part in which requests go through a gateway.
    pub(crate) with: Part,
    /// Many greedy tenants, and a gateway in the modes of Kubernetes.
    pub(crate) many_as_kubernetes: Part,
    /// The same, and a gateway in Evenkeel's own modes.
    pub(crate) many_with: Part,
    /// A burst at an idle level.
    pub(crate) burst: Burst,
    /// A service whose capacity nobody told.
    pub(crate) unknown: UnknownCapacity,
}

// === impl Part ===

impl Part {
    /// Sends the requests of all tenants, and shows the progress.
    pub(crate) async fn run(
        tenants: Vec<Tenant>,
        target: SocketAddr,
        length: Duration,
        progress: &mut Progress,
    ) -> Self {
        let loads: Vec<Arc<Load>> = tenants.into_iter().map(|tenant| Load::new(tenant, target)).collect();
        let start = Instant::now();
        let mut at_work: JoinSet<()> = loads.iter().map(|load| Arc::clone(load).run(start + length)).collect();
        let mut ticks = interval(Duration::from_millis(500));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = at_work.join_next() => if ended.is_none() { break },
                _ = ticks.tick() => progress.show(start.elapsed(), &Self::so_far(&loads, start).in_short()),
            }
        }
        let part = Self::so_far(&loads, start);
        progress.end(&part.in_short());
        part
    }

    fn so_far(loads: &[Arc<Load>], start: Instant) -> Self {
        let tenants = loads.iter().map(|load| (load.tenant(), load.tally())).collect();
        Self { tenants, took: start.elapsed() }
    }

    /// How it goes, in one line.
    fn in_short(&self) -> String {
        let (polite, greedy) = (self.polite(), self.greedy());
        format!(
            "polite tenants: {} served, p99 {}   greedy: {} served, {} rejected",
            polite.served(),
            milliseconds(polite.percentile(99)),
            greedy.served(),
            greedy.rejected,
        )
    }

    /// The polite tenants as if they were one.
    pub(crate) fn polite(&self) -> Tally {
        Tally::sum(self.polite_tenants().map(|(_, tally)| tally))
    }

    /// The greedy tenants as if they were one.
    pub(crate) fn greedy(&self) -> Tally {
        Tally::sum(self.tenants.iter().filter(|(tenant, _)| !tenant.is_polite()).map(|(_, tally)| tally))
    }

    /// The p99 of the polite tenant that waited longest. None if a polite tenant was not served at all.
    pub(crate) fn slowest_polite_p99(&self) -> Option<Duration> {
        let each: Option<Vec<_>> = self.polite_tenants().map(|(_, tally)| tally.percentile(99)).collect();
        each?.into_iter().max()
    }

    /// How many requests the service served per second, on average.
    pub(crate) fn served_per_second(&self) -> f64 {
        let served: usize = self.tenants.iter().map(|(_, tally)| tally.served()).sum();
        f64::from(u32::try_from(served).unwrap_or(u32::MAX)) / self.took.as_secs_f64().max(f64::EPSILON)
    }

    fn polite_tenants(&self) -> impl Iterator<Item = &(Tenant, Tally)> {
        self.tenants.iter().filter(|(tenant, _)| tenant.is_polite())
    }
}
