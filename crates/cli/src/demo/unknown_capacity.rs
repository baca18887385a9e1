//! The third table of the demo: a service whose capacity nobody told, without a limit and with one that finds itself.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use evenkeel_engine::auto_limit::{AUTO_BOUNDS, Concurrency};
use evenkeel_gateway::observe::frame::Limit;
use evenkeel_gateway::{Config, Gateway, objects};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::load::Load;
use super::progress::Progress;
use super::service::{Abilities, SampleService};
use super::tally::Tally;
use super::{stage, tenant};
use crate::serve;
use crate::terminal::{Column, Table, milliseconds};

/// The service. Its capacity is twice as many requests as the limit starts with, so that the limit has to move. Requests beyond it
/// make it slower and slower: with all that are sent here inside, it does a fifth of what it could do.
pub(crate) const SERVICE: Abilities =
    Abilities { workers: 40, work_ms: 80, waiting_per_slowdown: 50, slowdown_max: 10 };

const WITHOUT_LIMIT: &str = "without a limit";
const WITH_AUTO: &str = "with concurrency: auto";

/// How many lines the table has.
const STRETCHES: u32 = 5;

/// The two parts of the demonstration, without and with a gateway.
#[derive(Debug)]
pub(crate) struct UnknownCapacity {
    /// All requests go to the service at once.
    pub(crate) without: Course,
    /// The requests go through a gateway that is not told how many the service can take.
    pub(crate) with: Course,
    /// Why the limit was what it was at the end.
    because: String,
}

/// How one part went, stretch by stretch.
#[derive(Debug)]
pub(crate) struct Course {
    pub(crate) stretches: Vec<Stretch>,
}

/// The requests that were served in a stretch of time.
#[derive(Debug)]
pub(crate) struct Stretch {
    /// When it began and ended, from the start of the part.
    pub(crate) from: Duration,
    pub(crate) until: Duration,
    pub(crate) served: Tally,
    /// The limit at the end of the stretch, if there is one.
    pub(crate) limit: Option<u32>,
}

// === impl UnknownCapacity ===

impl UnknownCapacity {
    pub(crate) async fn measure(length: Duration) -> Result<Self> {
        let service =
            SampleService::start(SERVICE).await.context("cannot start the service without a known capacity")?;
        let without = Course::run(service.address(), length, WITHOUT_LIMIT, || None).await;
        let config = Config { concurrency: Some(Concurrency::Auto(AUTO_BOUNDS)), ..stage::config(&service)? };
        let source = objects::source(&config);
        let gateway = serve::start_with(config, source).await?;
        let address = *gateway.addresses().first().context("the gateway has no address")?;
        let with = Course::run(address, length, WITH_AUTO, || limit(&gateway).map(|limit| limit.applied)).await;
        let because = limit(&gateway).map_or_else(String::new, |limit| limit.because().to_owned());
        gateway.drain().await;
        Ok(Self { without, with, because })
    }

    /// Both parts side by side, with a line for each stretch.
    pub(crate) fn table(&self) -> String {
        let per_second = || Column::right("served/s").at_least(8);
        let p50 = || Column::right("p50").at_least(8);
        let limit = Column::right("limit").at_least(6);
        let mut table =
            Table::new([Column::left("seconds").at_least(10), per_second(), p50(), per_second(), p50(), limit]);
        table.span(1, 2, WITHOUT_LIMIT);
        table.span(3, 3, WITH_AUTO);
        table.line_before(3);
        table.ruler();
        for (without, with) in self.without.stretches.iter().zip(&self.with.stretches) {
            table.row([
                format!("{:.0} to {:.0}", without.from.as_secs_f64(), without.until.as_secs_f64()),
                format!("{:.0}", without.per_second()),
                milliseconds(without.served.percentile(50)),
                format!("{:.0}", with.per_second()),
                milliseconds(with.served.percentile(50)),
                with.limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string()),
            ]);
        }
        table.render()
    }

    /// The result of both parts at their ends, and why the limit has its value.
    pub(crate) fn summary(&self) -> String {
        let (Some(without), Some(with)) = (self.without.stretches.last(), self.with.stretches.last()) else {
            return String::new();
        };
        let limit = with.limit.map_or_else(|| "-".to_owned(), |limit| limit.to_string());
        format!(
            "Nobody told Evenkeel how many requests this service can take: {}, and beyond that it gets slower. Evenkeel has tried it out. \
             With its limit of {limit}, the service does {:.0} requests a second at the end, and without a limit {:.0}. Its latest decision: \
             \"{}\".",
            SERVICE.workers,
            with.per_second(),
            without.per_second(),
            self.because,
        )
    }
}

/// The limit of the gateway, with its reason.
fn limit(gateway: &Gateway) -> Option<Limit> {
    gateway.flow().limit_state().map(|state| Limit::new(&state, 0, 1))
}

// === impl Course ===

impl Course {
    /// Sends the requests of many greedy tenants to an address, and asks for the limit at the end of each stretch.
    async fn run(target: SocketAddr, length: Duration, title: &'static str, limit: impl Fn() -> Option<u32>) -> Self {
        let mut progress = Progress::new(title, length);
        let loads: Vec<Arc<Load>> = tenant::only_greedy().into_iter().map(|tenant| Load::new(tenant, target)).collect();
        let start = Instant::now();
        let mut at_work: JoinSet<()> = loads.iter().map(|load| Arc::clone(load).run(start + length)).collect();
        let mut stretches = Vec::new();
        let mut counted = vec![0; loads.len()];
        let mut from = Duration::ZERO;
        for number in 1..=STRETCHES {
            sleep_until(start + length * number / STRETCHES).await;
            let until = start.elapsed();
            let tallies: Vec<Tally> = loads.iter().map(|load| load.tally()).collect();
            let new: Vec<Tally> =
                tallies.iter().zip(&counted).map(|(tally, count)| tally.served_after(*count)).collect();
            counted = tallies.iter().map(Tally::served).collect();
            let stretch = Stretch { from, until, served: Tally::sum(&new), limit: limit() };
            let figures = stretch.in_short();
            if number == STRETCHES {
                progress.end(&figures);
            } else {
                progress.show(until, &figures);
            }
            stretches.push(stretch);
            from = until;
        }
        // Those under way are served, so that the next part begins with an idle service.
        while at_work.join_next().await.is_some() {}
        Self { stretches }
    }
}

// === impl Stretch ===

impl Stretch {
    /// How many requests the service served per second.
    pub(crate) fn per_second(&self) -> f64 {
        let served = u32::try_from(self.served.served()).unwrap_or(u32::MAX);
        f64::from(served) / self.until.saturating_sub(self.from).as_secs_f64().max(f64::EPSILON)
    }

    fn in_short(&self) -> String {
        let served =
            format!("{:.0} served a second, p50 {}", self.per_second(), milliseconds(self.served.percentile(50)));
        self.limit.map_or_else(|| served.clone(), |limit| format!("{served}   limit {limit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::tally::Ending;

    fn stretch(number: u64, served: usize, limit: Option<u32>) -> Stretch {
        let mut tally = Tally::default();
        (0..served).for_each(|_| tally.add(Ending::Served, Duration::from_millis(500)));
        let (from, until) = (Duration::from_secs(2 * number), Duration::from_secs(2 * number + 2));
        Stretch { from, until, served: tally, limit }
    }

    #[test]
    fn both_parts_stand_side_by_side_stretch_by_stretch() {
        let measured = UnknownCapacity {
            without: Course { stretches: (0..2).map(|number| stretch(number, 200, None)).collect() },
            with: Course { stretches: vec![stretch(0, 600, Some(20)), stretch(1, 0, Some(40))] },
            because: "trial 40 → 57: elasticity 0.05 ± 0.10: not taken".to_owned(),
        };
        insta::assert_snapshot!(format!("{}\n{}", measured.table(), measured.summary()));
    }
}
