//! The collector: copies the numbers of every level, and writes them when it holds no lock any more.

use std::fmt;
use std::sync::{Arc, Weak};

use evenkeel_engine::SeatSeconds;
use evenkeel_engine::controller::Dangling;
use evenkeel_engine::queue_set::{QueuingDiscipline, Rejection};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use super::Metric;
use super::catalogue as names;
use super::crowd::{Crowd, Doing};
use super::exposition::Exposition;
use super::histogram::{Bounds, Histogram};
use super::sample::LevelSample;
use super::series::{DURATIONS, Numbers, QUEUE_LENGTHS, SEATS, WATCHES};
use super::server::ServerSample;
use crate::control::flow_control::{FlowControl, Shared};
use crate::observe::flows::{FlowFigures, LevelFlows};

/// Writes the metrics of a flow control at every scrape; nothing once the flow control is gone.
#[derive(Debug)]
struct FlowCollector(Weak<Shared>);

/// A copy of all numbers, being written.
struct Writer<'a> {
    out: Exposition<'a>,
    levels: Vec<LevelSample>,
}

/// How many flows have series of their own (AT-3).
const FLOWS_MAX: usize = 20;

const REJECTIONS: [Rejection; 3] = [Rejection::QueueFull, Rejection::ConcurrencyLimit, Rejection::TimeOut];

// === impl FlowControl ===

impl FlowControl {
    /// Registers all metrics of API Priority and Fairness, under the names that they have in Kubernetes. Needs the feature
    /// `metrics`, which is on by default.
    ///
    /// ```
    /// use evenkeel::FlowControl;
    /// use prometheus_client::encoding::text;
    /// use prometheus_client::registry::Registry;
    ///
    /// let flow = FlowControl::builder().server_concurrency(100).build();
    /// let mut registry = Registry::default();
    /// flow.register_metrics(&mut registry);
    ///
    /// let mut page = String::new();
    /// text::encode(&mut page, &registry)?;
    /// assert!(page.contains("apiserver_flowcontrol_nominal_limit_seats{priority_level=\"catch-all\"}"));
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    pub fn register_metrics(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(FlowCollector(Arc::downgrade(self.shared()))));
    }
}

// === impl Shared ===

impl Shared {
    pub(crate) fn sample_metrics(&self) -> (Vec<LevelSample>, ServerSample) {
        self.known_levels.sample(self.upkeep())
    }
}

// === impl FlowCollector ===

impl Collector for FlowCollector {
    fn encode(&self, encoder: DescriptorEncoder) -> fmt::Result {
        let Some(shared) = self.0.upgrade() else { return Ok(()) };
        let (levels, server) = shared.sample_metrics();
        let (flows, dangling) = (shared.flows(FLOWS_MAX), shared.dangling());
        drop(shared);
        let mut writer = Writer { out: Exposition::new(encoder), levels };
        writer.counters()?;
        writer.gauges_of_series()?;
        writer.gauges_of_levels()?;
        writer.histograms()?;
        writer.ratios(&server)?;
        writer.server(&server)?;
        writer.modes()?;
        writer.dangling(&dangling)?;
        writer.long_running()?;
        writer.flows(&flows)
    }
}

// === impl Writer ===

impl Writer<'_> {
    fn counters(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::REJECTED)?;
        for (level, schema, numbers) in series(&self.levels) {
            for reason in REJECTIONS {
                let labels = [("flow_schema", schema), ("priority_level", level), ("reason", reason.as_str())];
                family.count(&labels, numbers.rejected[reason as usize])?;
            }
        }
        let mut family = self.out.family(names::DISPATCHED)?;
        for (level, schema, numbers) in series(&self.levels) {
            family.count(&[("flow_schema", schema), ("priority_level", level)], numbers.dispatched)?;
        }
        let mut family = self.out.family(names::EPOCH_ADVANCE)?;
        for level in &self.levels {
            for (is_clean, count) in ["false", "true"].into_iter().zip(level.epoch_advances) {
                family.count(&[("priority_level", &level.name), ("success", is_clean)], count)?;
            }
        }
        let mut family = self.out.family(names::NO_ACCOMMODATION)?;
        for (level, schema, numbers) in series(&self.levels) {
            family.count(&[("flow_schema", schema), ("priority_level", level)], numbers.blocked)?;
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
        for (level, schema, numbers) in series(&self.levels).filter(|(_, _, numbers)| is_shown(numbers)) {
            family.gauge(&[("flow_schema", schema), ("priority_level", level)], value(numbers))?;
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
        self.levels.iter().try_for_each(|level| family.gauge(&[("priority_level", &level.name)], value(level)))
    }

    fn float_gauge(&mut self, metric: Metric, value: impl Fn(&LevelSample) -> f64) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        self.levels.iter().try_for_each(|level| family.float_gauge(&[("priority_level", &level.name)], value(level)))
    }

    fn bounds(&mut self, metric: Metric, value: impl Fn(&LevelSample) -> (SeatSeconds, SeatSeconds)) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for level in &self.levels {
            let (min, max) = value(level);
            family.float_gauge(&[("bound", "min"), ("priority_level", &level.name)], min.as_f64())?;
            family.float_gauge(&[("bound", "max"), ("priority_level", &level.name)], max.as_f64())?;
        }
        Ok(())
    }

    /// The modes of each level.
    fn modes(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::MODES)?;
        for level in &self.levels {
            let Some(modes) = level.control.modes else { continue };
            let queuing = modes.queuing.map_or("none", QueuingDiscipline::name);
            let labels =
                [("borrowing", modes.borrowing.name()), ("priority_level", &*level.name), ("queuing", queuing)];
            family.gauge(&labels, 1)?;
        }
        Ok(())
    }

    fn dangling(&mut self, schemas: &[Dangling]) -> fmt::Result {
        let mut family = self.out.family(names::DANGLING)?;
        schemas.iter().try_for_each(|Dangling { schema, level, .. }| {
            family.gauge(&[("flow_schema", schema), ("priority_level", level)], 1)
        })
    }

    /// Only of levels that have long-running requests, or a limit on them.
    fn long_running(&mut self) -> fmt::Result {
        let is_shown = |level: &&LevelSample| level.long_running.is_used() || level.control.max_long_running.is_some();
        let shown: Vec<_> = self.levels.iter().filter(is_shown).collect();
        if shown.is_empty() {
            return Ok(());
        }
        let mut family = self.out.family(names::LONG_RUNNING)?;
        for level in &shown {
            family.gauge(&[("priority_level", &level.name)], level.long_running.running().into())?;
        }
        let mut family = self.out.family(names::LONG_RUNNING_LIMIT)?;
        for level in &shown {
            if let Some(limit) = level.control.max_long_running {
                family.gauge(&[("priority_level", &level.name)], limit.into())?;
            }
        }
        let mut family = self.out.family(names::LONG_RUNNING_REJECTED)?;
        for level in &shown {
            family.count(&[("priority_level", &level.name)], level.long_running.rejected())?;
        }
        Ok(())
    }

    /// Only where flows are attributed.
    fn flows(&mut self, levels: &[LevelFlows]) -> fmt::Result {
        if levels.is_empty() {
            return Ok(());
        }
        self.flow_gauge(levels, names::FLOW_SEATS, |figures| figures.seat_seconds)?;
        self.flow_gauge(levels, names::FLOW_WAITING, |figures| figures.wait_seconds)?;
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        self.flow_gauge(levels, names::FLOW_REJECTIONS, |figures| figures.rejections as f64)?;
        self.flow_gauge(levels, names::FLOW_DELAYING, |figures| figures.delay_seconds)
    }

    /// What the heaviest flows have by a figure, for each second of the window.
    fn flow_gauge(
        &mut self,
        levels: &[LevelFlows],
        metric: Metric,
        figure: impl Fn(&FlowFigures) -> f64,
    ) -> fmt::Result {
        let mut family = self.out.family(metric)?;
        for level in levels {
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
                family.float_gauge(&labels, figure / level.window_seconds)?;
            }
            let labels = [("flow", "other"), ("flow_schema", ""), ("priority_level", &level.level)];
            family.float_gauge(&labels, other / level.window_seconds)?;
        }
        Ok(())
    }

    fn histograms(&mut self) -> fmt::Result {
        let mut family = self.out.family(names::WAIT_DURATION)?;
        for (level, schema, numbers) in series(&self.levels) {
            for (executes, wait) in ["false", "true"].into_iter().zip(&numbers.wait) {
                let labels = [("execute", executes), ("flow_schema", schema), ("priority_level", level)];
                family.observed(&labels, &wait.show(&DURATIONS))?;
            }
        }
        let mut family = self.out.family(names::EXECUTION_DURATION)?;
        for (level, schema, numbers) in series(&self.levels) {
            for (kind, execution) in ["regular", "watch"].into_iter().zip(&numbers.execution) {
                let labels = [("flow_schema", schema), ("priority_level", level), ("type", kind)];
                family.observed(&labels, &execution.show(&DURATIONS))?;
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
        for (level, schema, numbers) in series(&self.levels) {
            let labels = [("flow_schema", schema), ("priority_level", level)];
            family.observed(&labels, &histogram(numbers).show(bounds))?;
        }
        Ok(())
    }

    fn ratios(&mut self, server: &ServerSample) -> fmt::Result {
        let mut family = self.out.family(names::SEAT_UTILIZATION)?;
        for level in &self.levels {
            family.histogram(&[("phase", "executing"), ("priority_level", &level.name)], &level.ratios.seats.show())?;
        }
        let mut family = self.out.family(names::REQUEST_UTILIZATION)?;
        for level in &self.levels {
            for (phase, ratio) in [("waiting", &level.ratios.waiting), ("executing", &level.ratios.executing)] {
                family.histogram(&[("phase", phase), ("priority_level", &level.name)], &ratio.show())?;
            }
        }
        let mut family = self.out.family(names::READ_VS_WRITE)?;
        for ((doing, access), ratio) in Crowd::KINDS.iter().zip(&server.ratios) {
            family.histogram(&[("phase", doing.as_str()), ("request_kind", access.as_str())], &ratio.show())?;
        }
        let mut family = self.out.family(names::DEMAND)?;
        for level in &self.levels {
            family.histogram(&[("priority_level", &level.name)], &level.ratios.demand.show())?;
        }
        Ok(())
    }

    fn server(&mut self, server: &ServerSample) -> fmt::Result {
        self.out.family(names::FAIR_FRACTION)?.lone_gauge(server.fair_fraction)?;
        for (metric, shown) in [(names::CURRENT_INFLIGHT, Doing::Executing), (names::CURRENT_INQUEUE, Doing::Waiting)] {
            let mut family = self.out.family(metric)?;
            for ((doing, access), peak) in Crowd::KINDS.iter().zip(server.peaks) {
                if *doing == shown {
                    family.gauge(&[("request_kind", access.as_str())], peak)?;
                }
            }
        }
        Ok(())
    }
}

/// The series of all levels, each with the names of its level and its schema.
fn series(levels: &[LevelSample]) -> impl Iterator<Item = (&str, &str, &Numbers)> {
    levels.iter().flat_map(|level| level.series.iter().map(|series| (&*level.name, &*series.schema, &series.numbers)))
}
