//! The collector: copies the numbers of every level, and writes them when it holds no lock any more.
//!
//! One collector can have several flow controls. Each metric is written once then, with the series of all of them: a page
//! on which a metric begins twice is not valid.

#[cfg(feature = "fleet")]
mod fleet;
mod limit;
mod shadow;

use std::fmt;
use std::sync::Weak;

use evenkeel_engine::SeatSeconds;
use evenkeel_engine::controller::Dangling;
use evenkeel_engine::queue_set::{QueuingDiscipline, Rejection};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use super::Metric;
use super::catalogue as names;
use super::exposition::{Exposition, FlowName};
use crate::control::accounts::AccountSample;
use crate::control::canary::CanaryState;
use crate::control::counts::CROWD_KINDS;
use crate::control::counts::LevelSample;
use crate::control::counts::ServerSample;
use crate::control::counts::crowd::Doing;
use crate::control::counts::histogram::{Bounds, Histogram};
use crate::control::counts::series::{DURATIONS, Numbers, QUEUE_LENGTHS, SEATS, WATCHES};
#[cfg(feature = "fleet")]
use crate::control::fleet::FleetState;
use crate::control::flow_control::FlowControlShared;
use crate::control::limit::LimitState;
use crate::control::shadow::ShadowTotals;
use crate::observe::flows::{FlowFigures, LevelFlows};

/// Writes the metrics of flow controls at every scrape; nothing of those that are gone.
#[derive(Debug)]
pub(super) struct FlowCollector(pub(super) Vec<Source>);

/// A flow control whose metrics are written.
#[derive(Debug)]
pub(super) struct Source {
    /// The label that tells it from others, and its value; `None` for one that is alone and needs no label.
    pub(super) name: Option<(&'static str, Box<str>)>,
    pub(super) flow: Weak<FlowControlShared>,
}

/// A copy of all numbers, being written.
struct Writer<'e, 'a> {
    out: Exposition<'e>,
    copies: Vec<Copied<'a>>,
}

/// The numbers of one flow control.
struct Copied<'a> {
    name: Option<FlowName<'a>>,
    levels: Vec<LevelSample>,
    server: ServerSample,
    flows: Vec<LevelFlows>,
    dangling: Vec<Dangling>,
    accounts: Vec<AccountSample>,
    /// `None` if the number of seats was set.
    limit: Option<LimitState>,
    /// `None` if there is no shadow.
    shadow: Option<ShadowTotals>,
    /// What the canary is doing, or the last one did, and how many have returned; `None` if there was none.
    canary: Option<(CanaryState, u64)>,
    /// `None` if the seats are not shared.
    #[cfg(feature = "fleet")]
    fleet: Option<FleetState>,
}

/// How many flows have series of their own (AT-3).
const FLOWS_MAX: usize = 20;

const REJECTIONS: [Rejection; 5] =
    [Rejection::QueueFull, Rejection::ConcurrencyLimit, Rejection::TimeOut, Rejection::Cancelled, Rejection::RateLimit];

// === impl FlowControlShared ===

impl FlowControlShared {
    fn account_samples(&self) -> Vec<AccountSample> {
        self.controlled().1.account_samples()
    }

    pub(crate) fn sample_metrics(&self) -> (Vec<LevelSample>, ServerSample) {
        self.known_levels.sample(self.upkeep())
    }
}

// === impl FlowCollector ===

impl Collector for FlowCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let copies: Vec<_> = self.0.iter().filter_map(Source::copy).collect();
        if copies.is_empty() {
            return Ok(());
        }
        let mut writer = Writer { out: Exposition::new(encoder), copies };
        writer.counters()?;
        writer.gauges_of_series()?;
        writer.gauges_of_levels()?;
        writer.histograms()?;
        writer.ratios()?;
        writer.server()?;
        writer.modes()?;
        writer.newcomer_seats()?;
        writer.dangling()?;
        writer.long_running()?;
        writer.revoked()?;
        writer.rates()?;
        writer.costs()?;
        writer.limits()?;
        writer.shadows()?;
        writer.canaries()?;
        #[cfg(feature = "fleet")]
        writer.fleets()?;
        writer.flows()
    }
}

// === impl Source ===

impl Source {
    fn copy(&self) -> Option<Copied<'_>> {
        let shared = self.flow.upgrade()?;
        let (levels, server) = shared.sample_metrics();
        let (flows, dangling, accounts) = (shared.flows(FLOWS_MAX), shared.dangling(), shared.account_samples());
        let limit = shared.limit_state();
        let (shadow, canary) = (shared.shadow_totals(), shared.canary_state_and_returns());
        let name = self.name.as_ref().map(|(label, value)| FlowName { label, value });
        Some(Copied {
            name,
            levels,
            server,
            flows,
            dangling,
            accounts,
            limit,
            shadow,
            canary,
            #[cfg(feature = "fleet")]
            fleet: shared.fleet_state(),
        })
    }
}

// === impl Writer ===

impl Writer<'_, '_> {
    fn counters(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::REJECTED)?;
        for (name, level, schema, numbers) in series(&self.copies) {
            for reason in REJECTIONS {
                let labels = [("flow_schema", schema), ("priority_level", level), ("reason", reason.as_str())];
                family.count(name, &labels, numbers.rejected[reason as usize])?;
            }
        }
        let mut family = self.out.family(names::DISPATCHED)?;
        for (name, level, schema, numbers) in series(&self.copies) {
            family.count(name, &[("flow_schema", schema), ("priority_level", level)], numbers.dispatched)?;
        }
        let mut family = self.out.family(names::EPOCH_ADVANCE)?;
        for (name, level) in levels(&self.copies) {
            for (is_clean, count) in ["false", "true"].into_iter().zip(level.epoch_advances) {
                family.count(name, &[("priority_level", &level.name), ("success", is_clean)], count)?;
            }
        }
        let mut family = self.out.family(names::NO_ACCOMMODATION)?;
        for (name, level, schema, numbers) in series(&self.copies) {
            family.count(name, &[("flow_schema", schema), ("priority_level", level)], numbers.blocked)?;
        }
        Ok(())
    }

    fn gauges_of_series(&mut self) -> fmt::Result {
        let was_queued = |numbers: &Numbers| numbers.queue_length.count() > 0;
        let was_started = |numbers: &Numbers| numbers.dispatched > 0;
        self.gauge_of_series(names::WAITING, was_queued, |numbers| numbers.waiting)?;
        self.gauge_of_series(names::WAITING_SEATS, was_queued, |numbers| numbers.waiting_seats)?;
        self.gauge_of_series(names::EXECUTING, was_started, |numbers| numbers.executing)?;
        self.gauge_of_series(names::EXECUTING_SEATS, was_started, |numbers| numbers.executing_seats)
    }

    fn gauge_of_series(
        &mut self,
        metric: Metric,
        is_shown: impl Fn(&Numbers) -> bool,
        value: impl Fn(&Numbers) -> i64,
    ) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, level, schema, numbers) in series(&self.copies).filter(|(.., numbers)| is_shown(numbers)) {
            family.gauge(name, &[("flow_schema", schema), ("priority_level", level)], value(numbers))?;
        }
        Ok(())
    }

    fn gauges_of_levels(&mut self) -> fmt::Result {
        self.float_gauge(names::CURRENT_R, |level| level.readings.current_r.as_f64())?;
        self.float_gauge(names::DISPATCH_R, |level| level.readings.dispatch_r.as_f64())?;
        self.float_gauge(names::LATEST_S, |level| level.readings.latest_s.as_f64())?;
        self.bounds(names::NEXT_S_BOUNDS, |level| level.readings.bounds.next_r)?;
        self.bounds(names::NEXT_DISCOUNTED_S_BOUNDS, |level| level.readings.bounds.discounted)?;
        self.gauge(names::NOMINAL_LIMIT, |level| level.control.limits.nominal)?;
        self.gauge(names::LOWER_LIMIT, |level| level.control.limits.min)?;
        self.gauge(names::UPPER_LIMIT, |level| level.control.limits.max)?;
        self.gauge(names::CURRENT_LIMIT, |level| level.control.current)?;
        self.gauge(names::DEMAND_HIGH_WATERMARK, |level| level.control.statistics.high_watermark)?;
        self.float_gauge(names::DEMAND_AVERAGE, |level| level.control.statistics.average)?;
        self.float_gauge(names::DEMAND_STDEV, |level| level.control.statistics.deviation)?;
        self.float_gauge(names::DEMAND_SMOOTHED, |level| level.control.statistics.smoothed)?;
        self.float_gauge(names::TARGET, |level| level.control.target)
    }

    fn gauge(&mut self, metric: Metric, value: impl Fn(&LevelSample) -> i64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        levels(&self.copies)
            .try_for_each(|(name, level)| family.gauge(name, &[("priority_level", &level.name)], value(level)))
    }

    fn float_gauge(&mut self, metric: Metric, value: impl Fn(&LevelSample) -> f64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        levels(&self.copies)
            .try_for_each(|(name, level)| family.float_gauge(name, &[("priority_level", &level.name)], value(level)))
    }

    fn bounds(&mut self, metric: Metric, value: impl Fn(&LevelSample) -> (SeatSeconds, SeatSeconds)) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, level) in levels(&self.copies) {
            let (min, max) = value(level);
            family.float_gauge(name, &[("bound", "min"), ("priority_level", &level.name)], min.as_f64())?;
            family.float_gauge(name, &[("bound", "max"), ("priority_level", &level.name)], max.as_f64())?;
        }
        Ok(())
    }

    /// The modes of each level.
    fn modes(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::MODES)?;
        for (name, level) in levels(&self.copies) {
            let Some(modes) = level.control.modes else { continue };
            let queuing = modes.queuing.map_or("none", QueuingDiscipline::name);
            let labels =
                [("borrowing", modes.borrowing.name()), ("priority_level", &*level.name), ("queuing", queuing)];
            family.gauge(name, &labels, 1)?;
        }
        Ok(())
    }

    /// Written only for levels in which each flow has a queue of its own.
    fn newcomer_seats(&mut self) -> fmt::Result {
        let is_shown = |(_, level): &(_, &LevelSample)| {
            level.control.modes.and_then(|modes| modes.queuing) == Some(QueuingDiscipline::PerFlow)
        };
        let mut family = self.out.family(names::NEWCOMER_SEATS)?;
        for (name, level) in levels(&self.copies).filter(is_shown) {
            family.gauge(name, &[("priority_level", &level.name)], level.kept_seats)?;
        }
        Ok(())
    }

    fn dangling(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::DANGLING)?;
        for Copied { name, dangling, .. } in &self.copies {
            for Dangling { schema, level, .. } in dangling {
                family.gauge(*name, &[("flow_schema", schema), ("priority_level", level)], 1)?;
            }
        }
        Ok(())
    }

    /// Written only for levels that have long-running requests, or a limit on them.
    fn long_running(&mut self) -> fmt::Result {
        let is_shown =
            |(_, level): &(_, &LevelSample)| level.long_running.is_used() || level.control.max_long_running.is_some();
        let shown: Vec<_> = levels(&self.copies).filter(is_shown).collect();
        if shown.is_empty() {
            return Ok(());
        }
        let mut family = self.out.family(names::LONG_RUNNING)?;
        for (name, level) in shown.iter().copied() {
            family.gauge(name, &[("priority_level", &level.name)], level.long_running.running().into())?;
        }
        let mut family = self.out.family(names::LONG_RUNNING_LIMIT)?;
        for (name, level) in shown.iter().copied() {
            if let Some(limit) = level.control.max_long_running {
                family.gauge(name, &[("priority_level", &level.name)], limit.into())?;
            }
        }
        let mut family = self.out.family(names::LONG_RUNNING_REJECTED)?;
        for (name, level) in shown.iter().copied() {
            family.count(name, &[("priority_level", &level.name)], level.long_running.rejected())?;
        }
        Ok(())
    }

    /// Series only of levels that are revocable, or were.
    fn revoked(&mut self) -> fmt::Result {
        let is_shown = |(_, level): &(_, &LevelSample)| level.control.is_revocable || level.revoked > 0;
        let mut family = self.out.family(names::REVOKED)?;
        for (name, level) in levels(&self.copies).filter(is_shown) {
            family.count(name, &[("priority_level", &level.name)], level.revoked)?;
        }
        Ok(())
    }

    /// Only of flow schemas whose flows have a rate.
    fn rates(&mut self) -> fmt::Result {
        let shown: Vec<_> = accounts(&self.copies)
            .flat_map(|(name, sample)| {
                let labels = |schema| [("flow_schema", schema), ("priority_level", &*sample.level)];
                sample.rates.iter().map(move |(schema, counts)| (name, labels(&**schema), *counts))
            })
            .collect();
        if shown.is_empty() {
            return Ok(());
        }
        let mut family = self.out.family(names::RATE_DELAYED)?;
        for (name, labels, counts) in &shown {
            family.count(*name, labels, counts.delayed)?;
        }
        let mut family = self.out.family(names::RATE_DELAY)?;
        for (name, labels, counts) in &shown {
            family.float_count(*name, labels, counts.delay.as_secs_f64())?;
        }
        let mut family = self.out.family(names::RATE_WAITING)?;
        for (name, labels, counts) in &shown {
            family.gauge(*name, labels, i64::try_from(counts.waiting).unwrap_or(i64::MAX))?;
        }
        Ok(())
    }

    /// Only of flow schemas whose costs count.
    fn costs(&mut self) -> fmt::Result {
        let shown: Vec<_> = accounts(&self.copies)
            .flat_map(|(name, sample)| {
                let labels =
                    |schema, unit| [("flow_schema", schema), ("priority_level", &*sample.level), ("unit", unit)];
                sample.costs.iter().map(move |(schema, unit, counts)| (name, labels(&**schema, *unit), *counts))
            })
            .collect();
        if shown.is_empty() {
            return Ok(());
        }
        let mut family = self.out.family(names::COST)?;
        for (name, labels, counts) in &shown {
            family.float_count(*name, labels, counts.cost)?;
        }
        let mut family = self.out.family(names::COST_EXPECTED)?;
        for (name, labels, counts) in &shown {
            family.float_count(*name, labels, counts.expected)?;
        }
        let mut family = self.out.family(names::COST_CLASSES)?;
        for (name, sample) in accounts(&self.copies).filter(|(_, sample)| !sample.costs.is_empty()) {
            let classes = i64::try_from(sample.classes).unwrap_or(i64::MAX);
            family.gauge(name, &[("priority_level", &sample.level)], classes)?;
        }
        Ok(())
    }

    /// Written only where flows are attributed.
    fn flows(&mut self) -> fmt::Result {
        if self.copies.iter().all(|copied| copied.flows.is_empty()) {
            return Ok(());
        }
        self.flow_gauge(names::FLOW_SEATS, |figures| figures.seat_seconds)?;
        self.flow_gauge(names::FLOW_WAITING, |figures| figures.wait_seconds)?;
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        self.flow_gauge(names::FLOW_REJECTIONS, |figures| figures.rejections as f64)?;
        self.flow_gauge(names::FLOW_DELAYING, |figures| figures.delay_seconds)
    }

    /// What the heaviest flows have by a figure, for each second of the window.
    fn flow_gauge(&mut self, metric: Metric, figure: impl Fn(&FlowFigures) -> f64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        let levels = self.copies.iter().flat_map(|copied| copied.flows.iter().map(|level| (copied.name, level)));
        for (name, level) in levels {
            let total = figure(&level.total);
            if total <= 0.0 || level.window_seconds <= 0.0 {
                continue;
            }
            let mut flows: Vec<_> = level.flows.iter().map(|flow| (&flow.id, figure(&flow.figures))).collect();
            flows.sort_by(|(_, one), (_, other)| other.total_cmp(one));
            flows.retain(|(_, figure)| *figure > 0.0);
            flows.truncate(FLOWS_MAX);
            let other = flows.iter().fold(total, |rest, (_, figure)| (rest - figure).max(0.0));
            for (id, figure) in flows {
                let labels = [("flow", &*id.flow), ("flow_schema", &id.schema), ("priority_level", &level.level)];
                family.float_gauge(name, &labels, figure / level.window_seconds)?;
            }
            let labels = [("flow", "other"), ("flow_schema", ""), ("priority_level", &level.level)];
            family.float_gauge(name, &labels, other / level.window_seconds)?;
        }
        Ok(())
    }

    fn histograms(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::WAIT_DURATION)?;
        for (name, level, schema, numbers) in series(&self.copies) {
            for (executes, wait) in ["false", "true"].into_iter().zip(&numbers.wait) {
                let labels = [("execute", executes), ("flow_schema", schema), ("priority_level", level)];
                family.observed(name, &labels, &wait.show(&DURATIONS))?;
            }
        }
        let mut family = self.out.family(names::EXECUTION_DURATION)?;
        for (name, level, schema, numbers) in series(&self.copies) {
            for (kind, execution) in ["regular", "watch"].into_iter().zip(&numbers.execution) {
                let labels = [("flow_schema", schema), ("priority_level", level), ("type", kind)];
                family.observed(name, &labels, &execution.show(&DURATIONS))?;
            }
        }
        self.histogram(names::QUEUE_LENGTH, &QUEUE_LENGTHS, |numbers| &numbers.queue_length)?;
        self.histogram(names::ESTIMATED_SEATS, &SEATS, |numbers| &numbers.seats)?;
        self.histogram(names::WATCH_COUNT, &WATCHES, |numbers| &numbers.watches)
    }

    fn histogram<const N: usize>(
        &mut self,
        metric: Metric,
        bounds: &Bounds<N>,
        histogram: impl Fn(&Numbers) -> &Histogram<N>,
    ) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for (name, level, schema, numbers) in series(&self.copies) {
            let labels = [("flow_schema", schema), ("priority_level", level)];
            family.observed(name, &labels, &histogram(numbers).show(bounds))?;
        }
        Ok(())
    }

    fn ratios(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::SEAT_UTILIZATION)?;
        for (name, level) in levels(&self.copies) {
            family.histogram(
                name,
                &[("phase", "executing"), ("priority_level", &level.name)],
                &level.ratios.seats.show(),
            )?;
        }
        let mut family = self.out.family(names::REQUEST_UTILIZATION)?;
        for (name, level) in levels(&self.copies) {
            for (phase, ratio) in [("waiting", &level.ratios.waiting), ("executing", &level.ratios.executing)] {
                family.histogram(name, &[("phase", phase), ("priority_level", &level.name)], &ratio.show())?;
            }
        }
        let mut family = self.out.family(names::READ_VS_WRITE)?;
        for Copied { name, server, .. } in &self.copies {
            for ((doing, access), ratio) in CROWD_KINDS.iter().zip(&server.ratios) {
                let labels = [("phase", doing.as_str()), ("request_kind", access.as_str())];
                family.histogram(*name, &labels, &ratio.show())?;
            }
        }
        let mut family = self.out.family(names::DEMAND)?;
        for (name, level) in levels(&self.copies) {
            family.histogram(name, &[("priority_level", &level.name)], &level.ratios.demand.show())?;
        }
        Ok(())
    }

    fn server(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::FAIR_FRACTION)?;
        for Copied { name, server, .. } in &self.copies {
            match name {
                Some(_) => family.float_gauge(*name, &[], server.fair_fraction)?,
                None => family.lone_gauge(server.fair_fraction)?,
            }
        }
        for (metric, shown) in [(names::CURRENT_INFLIGHT, Doing::Executing), (names::CURRENT_INQUEUE, Doing::Waiting)] {
            let mut family = self.out.family(metric)?;
            for Copied { name, server, .. } in &self.copies {
                let peaks = CROWD_KINDS.iter().zip(server.peaks).filter(|((doing, _), _)| *doing == shown);
                for ((_, access), peak) in peaks {
                    family.gauge(*name, &[("request_kind", access.as_str())], peak)?;
                }
            }
        }
        Ok(())
    }
}

/// The counts of costs and rates, of each level that has any, with the name of its flow control.
fn accounts<'a>(copies: &'a [Copied<'a>]) -> impl Iterator<Item = (Option<FlowName<'a>>, &'a AccountSample)> {
    copies.iter().flat_map(|copied| copied.accounts.iter().map(|sample| (copied.name, sample)))
}

/// The levels of all flow controls, each with the name of its flow control.
fn levels<'a>(copies: &'a [Copied<'a>]) -> impl Iterator<Item = (Option<FlowName<'a>>, &'a LevelSample)> {
    copies.iter().flat_map(|copied| copied.levels.iter().map(|level| (copied.name, level)))
}

/// The series of all levels, each with the names of its flow control, its level and its schema.
fn series<'a>(copies: &'a [Copied<'a>]) -> impl Iterator<Item = (Option<FlowName<'a>>, &'a str, &'a str, &'a Numbers)> {
    levels(copies).flat_map(|(name, level)| {
        level.series.iter().map(move |series| (name, &*level.name, &*series.schema, &series.numbers))
    })
}
