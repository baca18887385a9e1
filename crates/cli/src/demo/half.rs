//! One half of the demo: all tenants against one address for some time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::load::Load;
use super::progress::Progress;
use super::tally::Tally;
use super::tenant::{self, Tenant};

/// What came of one half.
#[derive(Debug)]
pub(crate) struct Half {
    pub(crate) tenants: Vec<(Tenant, Tally)>,
    /// From the first request to the last response.
    pub(crate) took: Duration,
}

// === impl Half ===

impl Half {
    /// Lets all tenants loose on the address, and shows how it goes.
    pub(crate) async fn run(target: SocketAddr, length: Duration, progress: &mut Progress) -> Self {
        let loads: Vec<Arc<Load>> = tenant::all().into_iter().map(|tenant| Load::new(tenant, target)).collect();
        let start = Instant::now();
        let mut at_work: JoinSet<()> = loads.iter().map(|load| Arc::clone(load).run(start + length)).collect();
        let mut ticks = interval(Duration::from_millis(500));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = at_work.join_next() => if ended.is_none() { break },
                _ = ticks.tick() => progress.show(start.elapsed(), &Self::so_far(&loads, start)),
            }
        }
        let half = Self::so_far(&loads, start);
        progress.end(&half);
        half
    }

    fn so_far(loads: &[Arc<Load>], start: Instant) -> Self {
        let tenants = loads.iter().map(|load| (load.tenant(), load.tally())).collect();
        Self { tenants, took: start.elapsed() }
    }

    /// The polite tenants as if they were one.
    pub(crate) fn polite(&self) -> Tally {
        Tally::sum(self.tenants.iter().filter(|(tenant, _)| tenant.is_polite()).map(|(_, tally)| tally))
    }

    /// The greedy tenant.
    pub(crate) fn greedy(&self) -> Tally {
        Tally::sum(self.tenants.iter().filter(|(tenant, _)| !tenant.is_polite()).map(|(_, tally)| tally))
    }

    /// How many requests the service served per second, on average.
    pub(crate) fn served_per_second(&self) -> f64 {
        let served: usize = self.tenants.iter().map(|(_, tally)| tally.served()).sum();
        f64::from(u32::try_from(served).unwrap_or(u32::MAX)) / self.took.as_secs_f64().max(f64::EPSILON)
    }
}
